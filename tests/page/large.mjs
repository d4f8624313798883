// A cluster of a thousand nodes with eight devices each, as its API would tell it.

export const kNodes = 1000;
export const kDevices = 8;

const stamp = "2026-01-01T00:00:00Z";

const meta = (name, more = {}) => ({
  name,
  uid: `uid-${name}`,
  creationTimestamp: stamp,
  resourceVersion: "1",
  ...more,
});

const nodes = Array.from({ length: kNodes }, (_, index) => ({
  metadata: meta(`node-${index}`),
  status: { conditions: [{ type: "Ready", status: index % 100 === 99 ? "False" : "True" }] },
}));

const slices = nodes.map((node, index) => ({
  metadata: meta(`slice-${index}`),
  spec: {
    driver: "gpu.example.com",
    nodeName: node.metadata.name,
    pool: { name: node.metadata.name, generation: 1 },
    devices: Array.from({ length: kDevices }, (_, device) => ({
      name: `gpu-${device}`,
      attributes: { model: { string: "LARGE" }, index: { int: device } },
      capacity: { memory: { value: "80Gi" } },
      taints: device === 7 && index % 10 === 0 ? [{ key: "ill", effect: "NoSchedule" }] : undefined,
    })),
  },
}));

export function claim(index, device) {
  return {
    metadata: meta(`claim-${index}-${device}`, { namespace: `team-${index % 5}` }),
    spec: {
      devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu.example.com" } }] },
    },
    status: {
      allocation: {
        allocationTimestamp: stamp,
        devices: {
          results: [
            {
              request: "gpu",
              driver: "gpu.example.com",
              pool: `node-${index}`,
              device: `gpu-${device}`,
            },
          ],
        },
      },
      reservedFor: [
        { resource: "pods", name: `pod-${index}-${device}`, uid: `p-${index}-${device}` },
      ],
    },
  };
}

const claims = nodes.flatMap((_, index) => [0, 1, 2].map((device) => claim(index, device)));

const pods = claims.map((one) => ({
  metadata: meta(one.metadata.name.replace("claim", "pod"), { namespace: one.metadata.namespace }),
  spec: {
    nodeName: one.status.allocation.devices.results[0].pool,
    resourceClaims: [{ name: "gpu" }],
  },
  status: { phase: "Running", containerStatuses: [{ state: { running: { startedAt: stamp } } }] },
}));

export const lists = {
  nodes,
  pods,
  events: [],
  resourceslices: slices,
  resourceclaims: claims,
  devicetaintrules: [],
};
