// What users and controllers do to a cluster: pods come, change and go, so do manifests, taints and objects.

import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Pod } from '../../../client/types.ts';
import { FOREIGN_CONDITION } from '../../../labs/sim/foreign.ts';
import { IMAGES } from '../../../labs/sim/images.ts';
import { CLAIMS, type ClaimName } from '../../../labs/sim/storage-objects.ts';
import { computePodQOS } from '../../../lib/qos-class.ts';
import type { Chooser, Happening } from './chooser.ts';
import type { PodMaker } from './pod-maker.ts';
import { resizeRequested } from './resource-rules.ts';

const MOST_PODS = 8;
const MOST_MANIFESTS = 2;

export function userEvents(choose: Chooser, maker: PodMaker) {
  const { world, dice } = choose;
  const { api, manifests, objects, rules } = world;
  const edit = (pod: Pod | undefined, spec: (pod: Pod) => Partial<Pod['spec']>): string | undefined => {
    if (pod === undefined) return undefined;
    api.updatePod({ ...pod, spec: { ...pod.spec, ...spec(pod) } });
    return pod.metadata.name;
  };
  const manifest = (name: string, broken: boolean): string => manifestOf(maker, name, broken);
  return {
    create: () => {
      if (api.pods.size >= MOST_PODS) return undefined;
      const pod = api.createPod(maker.make());
      return `${pod.metadata.name} ${JSON.stringify(pod.spec)}`;
    },
    // Another pod of the same name, the moment the name is free.
    recreate: () => {
      const pod = choose.pod();
      if (pod === undefined) return undefined;
      api.deletePod(pod, 0);
      return api.createPod(maker.make(pod.metadata.name)).metadata.name;
    },
    delete: () => {
      const pod = choose.livePod();
      if (pod === undefined) return undefined;
      const grace = dice.pick([1, 5, 30, pod.spec.terminationGracePeriodSeconds || 1]);
      api.deletePod(pod, grace);
      return `${pod.metadata.name} ${grace}`;
    },
    shorten: () => {
      const pod = choose.pod(({ metadata }) => metadata.deletionTimestamp !== undefined);
      if (pod === undefined) return undefined;
      api.deletePod(pod, 1);
      return pod.metadata.name;
    },
    forceDelete: () => {
      const pod = choose.pod();
      if (pod === undefined) return undefined;
      api.deletePod(pod, 0);
      return pod.metadata.name;
    },
    editImage: () =>
      edit(choose.livePod(), ({ metadata, spec }) => ({
        containers: spec.containers.map((container, index) => {
          if (index > 0) return container;
          const image = dice.pick(IMAGES.present);
          // Also where it is the one from before the last edit: its container may be on its way out for that.
          if (image !== container.image) rules.mayRunAgain(metadata.uid as PodUID, container.name);
          return { ...container, image };
        }),
      })),
    editDeadline: () => {
      const pod = choose.livePod();
      const name = edit(pod, ({ spec }) => ({
        activeDeadlineSeconds: Math.min(spec.activeDeadlineSeconds ?? 10_000, dice.pick([1, 30, 300])),
      }));
      const edited = name === undefined ? undefined : api.podNamed(name);
      if (edited !== undefined) world.timing.podBegan(edited);
      return name;
    },
    editLabels: () => {
      const pod = choose.livePod();
      if (pod === undefined) return undefined;
      api.updatePod({ ...pod, metadata: { ...pod.metadata, labels: { edited: String(dice.below(1000)) } } });
      return pod.metadata.name;
    },
    resize: () => {
      const pod = choose.livePod();
      if (pod === undefined) return undefined;
      const [first, ...others] = pod.spec.containers;
      if (first === undefined) return undefined;
      const resized = {
        ...pod,
        spec: { ...pod.spec, containers: [{ ...first, resources: maker.resized(first) }, ...others] },
      };
      // As the API server refuses it.
      if (computePodQOS(resized.spec) !== computePodQOS(pod.spec)) return undefined;
      const updated = api.updatePod(resized);
      resizeRequested(world, updated);
      return `${pod.metadata.name} ${JSON.stringify(resized.spec.containers[0]?.resources)}`;
    },
    debug: () =>
      edit(choose.livePod(), (pod) => ({
        ephemeralContainers: [...(pod.spec.ephemeralContainers ?? []), maker.ephemeral(pod)],
      })),
    gate: () => {
      const pod = choose.livePod();
      if (pod === undefined) return undefined;
      const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== FOREIGN_CONDITION);
      const condition = { type: FOREIGN_CONDITION, status: dice.pick(['True', 'False']) };
      api.updatePod({ ...pod, status: { ...pod.status, conditions: [...others, condition] } });
      return `${pod.metadata.name} ${condition.status}`;
    },
    taint: () => {
      const taints = dice.chance(0.15) ? [{ key: 'broken', effect: 'NoExecute' }] : [];
      const labels: Record<string, string> = dice.chance(0.5) ? { disk: 'ssd' } : {};
      api.nodes.updateNode((node) => ({
        ...node,
        metadata: { ...node.metadata, labels },
        spec: { ...node.spec, taints },
      }));
      return `${taints.length} ${labels['disk']}`;
    },
    disturbLease: () => {
      const change = dice.pick(['touch', 'touch', 'delete'] as const);
      api.nodes.disturbLease(change);
      return change;
    },
    manifest: () => {
      const name = dice.pick([...manifests.files]);
      if (name !== undefined && (manifests.files.size >= MOST_MANIFESTS || dice.chance(0.5))) {
        if (dice.chance(0.4)) manifests.remove(name);
        else manifests.write(name, manifest(name, dice.chance(0.1)));
        return name;
      }
      const added = `static-${dice.below(100)}`;
      manifests.write(added, manifest(added, false));
      return added;
    },
    // A volume is detached once no pod uses it, as the attach/detach controller does.
    detach: () => {
      const [claim] = Object.keys(CLAIMS) as ClaimName[];
      const used = [...api.pods.values()].some(({ spec }) =>
        spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claim),
      );
      if (claim === undefined || used || world.csi.staged.size > 0) return undefined;
      world.storage.detach(claim);
      return claim;
    },
    settings: () => {
      objects.present = !objects.present;
      world.weather.bad();
      return String(objects.present);
    },
    editSettings: () => {
      objects.edit();
      world.timing.settingsEdited();
      return objects.value;
    },
  } satisfies Record<string, Happening>;
}

function manifestOf(maker: PodMaker, name: string, broken: boolean): string {
  if (broken) return '{ "kind": "Pod", ';
  const { nodeName: _node, priority: _priority, ...spec } = maker.make(name).spec;
  const containers = spec.containers.map(({ env: _env, ...container }) => container);
  const initContainers = (spec.initContainers ?? []).map(({ env: _env, ...container }) => container);
  // A static pod can refer to no object of the API server.
  const volumes = (spec.volumes ?? []).filter(({ emptyDir }) => emptyDir !== undefined);
  const names = new Set(volumes.map((volume) => volume.name));
  for (const container of [...containers, ...initContainers]) {
    container.volumeMounts = (container.volumeMounts ?? []).filter((mount) => names.has(mount.name));
  }
  const metadata = { name, namespace: 'kube-system' };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { ...spec, volumes, containers, initContainers },
  });
}
