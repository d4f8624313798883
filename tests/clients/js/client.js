// The JavaScript client against a running dibs: `node client.js basics NAMESPACE` checks single requests and prints "ok CHECK" or
// "failed CHECK: WHY"; `node client.js follow NAMESPACE` runs an informer and a bare watch over the configmaps of a namespace, prints each
// event as "informer|watch VERB NAME VERSION", and ends when a configmap named "end" appears. What it prints is judged by run.py.
import * as k8s from '@kubernetes/client-node';

const [mode, namespace] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

function same(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
  }
}

async function refused(code, attempt) {
  try {
    await attempt();
  } catch (error) {
    same(error.code, code, 'status code');
    return;
  }
  throw new Error(`no error, expected ${code}`);
}

const withPatch = (type) => k8s.setHeaderOptions('Content-Type', type);

const checks = {
  async version() {
    const version = await config.makeApiClient(k8s.VersionApi).getCode();
    same(version.major, '1', 'major');
  },
  async life_of_an_object() {
    const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'js' }, data: { k: 'v' } } });
    same(made.data, { k: 'v' }, 'created');
    made.data.more = 'x';
    const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'js', body: made });
    await refused(409, () => core.replaceNamespacedConfigMap({ namespace, name: 'js', body: made }));
    if (BigInt(replaced.metadata.resourceVersion) <= BigInt(made.metadata.resourceVersion)) {
      throw new Error('the version did not grow');
    }
    same((await core.readNamespacedConfigMap({ namespace, name: 'js' })).data, { k: 'v', more: 'x' }, 'read');
    await core.deleteNamespacedConfigMap({ namespace, name: 'js' });
    await refused(404, () => core.readNamespacedConfigMap({ namespace, name: 'js' }));
  },
  async patches() {
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'patched' }, data: { a: '1' } } });
    const json = await core.patchNamespacedConfigMap(
      { namespace, name: 'patched', body: [{ op: 'replace', path: '/data/a', value: '2' }] },
      withPatch(k8s.PatchStrategy.JsonPatch));
    same(json.data, { a: '2' }, 'JSON patch');
    const merged = await core.patchNamespacedConfigMap(
      { namespace, name: 'patched', body: { data: { b: '3' } } }, withPatch(k8s.PatchStrategy.MergePatch));
    same(merged.data, { a: '2', b: '3' }, 'merge patch');
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { c: '4' } };
    const applied = await core.patchNamespacedConfigMap(
      { namespace, name: 'patched', body, fieldManager: 'js' }, withPatch(k8s.PatchStrategy.ServerSideApply));
    same(applied.data, { a: '2', b: '3', c: '4' }, 'apply');
  },
  async pages() {
    for (let i = 0; i < 7; i++) {
      await core.createNamespacedSecret({ namespace, body: { metadata: { name: `s${i}` } } });
    }
    const names = [];
    let _continue;
    do {
      const page = await core.listNamespacedSecret({ namespace, limit: 3, _continue });
      names.push(...page.items.map((item) => item.metadata.name));
      _continue = page.metadata._continue;
    } while (_continue);
    same(names, ['s0', 's1', 's2', 's3', 's4', 's5', 's6'], 'names of all pages');
  },
  async any_kind_by_its_name() {
    const client = k8s.KubernetesObjectApi.makeApiClient(config);
    const made = await client.create({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'any', namespace },
      spec: { replicas: 0, selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } } } });
    same(made.spec.strategy.type, 'RollingUpdate', 'default');
    await client.delete(made);
  },
  async invalid_is_explained() {
    try {
      await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'Not Valid' } } });
    } catch (error) {
      same(error.code, 422, 'status code');
      same(JSON.parse(error.body).details.causes[0].field, 'metadata.name', 'field');
      return;
    }
    throw new Error('no error');
  },
};

async function basics() {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`failed ${name}: ${error.message}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

async function follow() {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const ended = { informer: false, watch: false };
  let informer;
  const report = (who, verb, object) => {
    console.log(`${who} ${verb} ${object.metadata.name} ${object.metadata.resourceVersion}`);
    if (object.metadata.name !== 'end') return;
    ended[who] = true;
    if (ended.informer && ended.watch) {
      for (const item of informer.list()) console.log(`cache ${item.metadata.name} ${item.metadata.resourceVersion}`);
      process.exit(0);
    }
  };

  informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
  informer.on('add', (object) => report('informer', 'ADDED', object));
  informer.on('update', (object) => report('informer', 'MODIFIED', object));
  informer.on('delete', (object) => report('informer', 'DELETED', object));
  informer.on('error', () => setTimeout(() => informer.start(), 100));
  await informer.start();

  let version = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
  const watch = new k8s.Watch(config);
  const again = () => watch.watch(path, { resourceVersion: version, allowWatchBookmarks: true }, (verb, object) => {
    if (verb === 'ERROR') {
      console.log(`watch ERROR - ${JSON.stringify(object)}`);
      return;
    }
    version = object.metadata.resourceVersion;
    if (verb !== 'BOOKMARK') report('watch', verb, object);
  }, () => setTimeout(again, 100));
  await again();
  console.log('ready');
}

await (mode === 'basics' ? basics() : follow());
