// The shapes of API objects, as far as the page reads them. Everything may be missing: servers of several releases answer.

export interface Meta {
  name: string;
  namespace?: string;
  uid: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  resourceVersion?: string;
  generation?: number;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { kind: string; name: string; uid: string }[];
  managedFields?: unknown;
}

export interface Thing {
  metadata: Meta;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Taint {
  key: string;
  value?: string;
  effect: string;
  timeAdded?: string;
}

export interface Node extends Thing {
  spec?: { unschedulable?: boolean; taints?: Taint[] };
  status?: { conditions?: Condition[] };
}

interface ContainerStatus {
  name: string;
  state?: {
    running?: { startedAt?: string };
    waiting?: { reason?: string; message?: string };
    terminated?: { startedAt?: string; finishedAt?: string };
  };
  allocatedResourcesStatus?: {
    name: string;
    resources?: { resourceID: string; health?: string; message?: string }[];
  }[];
}

export interface Pod extends Thing {
  spec?: {
    nodeName?: string;
    resourceClaims?: { name: string }[];
    schedulingGates?: { name: string }[];
  };
  status?: {
    phase?: string;
    message?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
    resourceClaimStatuses?: { name: string; resourceClaimName?: string }[];
    extendedResourceClaimStatus?: { resourceClaimName?: string };
  };
}

interface Request {
  name?: string;
  deviceClassName?: string;
  exactly?: { deviceClassName?: string };
  firstAvailable?: { name: string; deviceClassName?: string }[];
}

export interface Result {
  request?: string;
  driver: string;
  pool: string;
  device: string;
  adminAccess?: boolean;
  shareID?: string;
}

export interface Claim extends Thing {
  spec?: { devices?: { requests?: Request[] }; resourceClassName?: string };
  status?: {
    allocation?: {
      allocationTimestamp?: string;
      devices?: { results?: Result[] };
      nodeSelector?: {
        nodeSelectorTerms?: { matchFields?: { key: string; values?: string[] }[] }[];
      };
    };
    reservedFor?: { resource?: string; name: string; uid: string }[];
    devices?: { driver: string; pool: string; device: string; conditions?: Condition[] }[];
  };
}

type Counters = Record<string, { value?: string }>;

interface DeviceBody {
  consumesCounters?: { counterSet: string; counters?: Counters }[];
  attributes?: Record<string, Record<string, unknown>>;
  capacity?: Record<string, { value?: string } | string>;
  taints?: Taint[];
  nodeName?: string;
  allowMultipleAllocations?: boolean;
}

export interface SliceDevice extends DeviceBody {
  name: string;
  basic?: DeviceBody;
}

export interface Slice extends Thing {
  spec?: {
    driver: string;
    nodeName?: string;
    pool?: { name: string; generation?: number };
    devices?: SliceDevice[];
    sharedCounters?: { name: string; counters?: Counters }[];
  };
  // resource.k8s.io/v1alpha2
  nodeName?: string;
  driverName?: string;
  namedResources?: { instances?: { name: string }[] };
}

export interface TaintRule extends Thing {
  spec?: {
    deviceSelector?: {
      driver?: string;
      pool?: string;
      device?: string;
      deviceClassName?: string;
      selectors?: unknown[];
    } | null;
    taint?: Taint;
  };
  status?: { conditions?: Condition[] };
}

export interface Event extends Thing {
  involvedObject?: { kind?: string; uid?: string };
  reason?: string;
  message?: string;
  type?: string;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { lastObservedTime?: string } | null;
}
