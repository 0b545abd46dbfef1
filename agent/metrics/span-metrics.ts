// The agent's work as metrics with the kubelet's names, counted from its trace: every outward call is a span already. Counts
// only; what is a state (pods that run) is read when the page is shown.

import { Counter, DEFAULT_BUCKETS, exponentialBuckets, Histogram, labelText, type Metric } from '../../lib/metrics.ts';
import { getOwn } from '../../lib/own-property.ts';
import { RestClientMetrics } from '../../lib/rest-client-metrics.ts';
import type { Span } from '../../lib/trace.ts';

/** CRI's methods under the kubelet's names of operations. */
const OPERATIONS: Readonly<Record<string, string>> = {
  Version: 'version',
  Status: 'status',
  CreateContainer: 'create_container',
  StartContainer: 'start_container',
  StopContainer: 'stop_container',
  RemoveContainer: 'remove_container',
  ListContainers: 'list_containers',
  ContainerStatus: 'container_status',
  UpdateContainerResources: 'update_container',
  ReopenContainerLog: 'reopen_container_log',
  ExecSync: 'exec_sync',
  Exec: 'exec',
  Attach: 'attach',
  PortForward: 'port_forward',
  RunPodSandbox: 'run_podsandbox',
  StopPodSandbox: 'stop_podsandbox',
  RemovePodSandbox: 'remove_podsandbox',
  PodSandboxStatus: 'podsandbox_status',
  ListPodSandbox: 'list_podsandbox',
  UpdatePodSandboxResources: 'update_podsandbox_resources',
  ListContainerStats: 'list_container_stats',
  RuntimeConfig: 'runtime_config',
  ListImages: 'list_images',
  ImageStatus: 'image_status',
  PullImage: 'pull_image',
  RemoveImage: 'remove_image',
  ImageFsInfo: 'image_fs_info',
};

const PROBE_TYPES: Readonly<Record<string, string>> = {
  startup: 'Startup',
  liveness: 'Liveness',
  readiness: 'Readiness',
};
/** A probe's outcome as the kubelet counts it. */
const PROBE_RESULTS: Readonly<Record<string, string>> = {
  success: 'successful',
  warning: 'successful',
  failure: 'failed',
  error: 'unknown',
};

const STORAGE_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export interface SpanMetricsOptions {
  /** The API server's host and port; undefined in standalone mode. */
  readonly apiHost: string | undefined;
}

export class SpanMetrics {
  readonly #operations = new Counter(
    'kubelet_runtime_operations_total',
    '[ALPHA] Cumulative number of runtime operations by operation type.',
  );
  readonly #operationErrors = new Counter(
    'kubelet_runtime_operations_errors_total',
    '[ALPHA] Cumulative number of runtime operation errors by operation type.',
  );
  readonly #operationSeconds = new Histogram(
    'kubelet_runtime_operations_duration_seconds',
    '[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.',
    exponentialBuckets(0.005, 2.5, 14),
  );
  readonly #sandboxSeconds = new Histogram(
    'kubelet_run_podsandbox_duration_seconds',
    '[ALPHA] Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.',
    DEFAULT_BUCKETS,
  );
  readonly #sandboxErrors = new Counter(
    'kubelet_run_podsandbox_errors_total',
    '[ALPHA] Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.',
  );
  readonly #startedPods = new Counter('kubelet_started_pods_total', '[ALPHA] Cumulative number of pods started');
  readonly #startedContainers = new Counter(
    'kubelet_started_containers_total',
    '[ALPHA] Cumulative number of containers started',
  );
  readonly #requests: RestClientMetrics;
  readonly #storage = new Histogram(
    'storage_operation_duration_seconds',
    '[ALPHA] Storage operation duration',
    STORAGE_BUCKETS,
  );
  readonly #cgroups = new Histogram(
    'kubelet_cgroup_manager_duration_seconds',
    '[ALPHA] Duration in seconds for cgroup manager operations. Broken down by method.',
    DEFAULT_BUCKETS,
  );
  readonly #probes = new Counter(
    'prober_probe_total',
    '[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.',
  );
  readonly #probeSeconds = new Histogram(
    'prober_probe_duration_seconds',
    '[ALPHA] Duration in seconds for a probe response.',
    DEFAULT_BUCKETS,
  );

  constructor({ apiHost }: SpanMetricsOptions) {
    this.#requests = new RestClientMetrics(apiHost ?? '');
  }

  /** Of the agent's own page. */
  get agent(): readonly Metric[] {
    return [
      this.#operations,
      this.#operationErrors,
      this.#operationSeconds,
      this.#sandboxSeconds,
      this.#sandboxErrors,
      this.#startedContainers,
      this.#startedPods,
      this.#requests,
      this.#storage,
      this.#cgroups,
    ];
  }

  /** Of the page about probes. */
  get probes(): readonly Metric[] {
    return [this.#probeSeconds, this.#probes];
  }

  /** A call has ended. */
  readonly take = (span: Span): void => {
    if (span.kind === 'cri') this.#runtime(span);
    else if (span.kind === 'probe') this.#probe(span);
    else if (span.kind === 'api') this.#requests.take(span);
    else if (span.kind === 'volume') this.#volume(span);
    else if (span.kind === 'cgroup') this.#cgroup(span);
  };

  /** Series of a pod that is gone are no longer shown. */
  podGone({ uid, namespace, name }: { readonly uid: string; readonly namespace: string; readonly name: string }): void {
    this.#probes.removeWhere(labelText({ pod_uid: uid }));
    this.#probeSeconds.removeWhere(labelText({ namespace, pod: name }));
  }

  #runtime({ name, durationMs, outcome, attributes }: Span): void {
    const operation_type = getOwn(OPERATIONS, name);
    // Events of the runtime's are spans of this kind, too.
    if (operation_type === undefined) return;
    const failed = outcome === 'error';
    this.#operations.inc({ operation_type });
    this.#operationSeconds.observe(durationMs / 1000, { operation_type });
    if (failed) this.#operationErrors.inc({ operation_type });
    if (name === 'RunPodSandbox') {
      const handler = attributes['runtimeHandler'];
      const labels = { runtime_handler: typeof handler === 'string' ? handler : '' };
      this.#startedPods.inc();
      this.#sandboxSeconds.observe(durationMs / 1000, labels);
      if (failed) this.#sandboxErrors.inc(labels);
    }
    if (name === 'CreateContainer') {
      const type = attributes['type'];
      const container_type = type === 'init' || type === 'ephemeral' ? `${type}_container` : 'container';
      this.#startedContainers.inc({ container_type });
    }
  }

  #probe({ name, durationMs, pod, attributes }: Span): void {
    const probe_type = getOwn(PROBE_TYPES, name);
    const kind = attributes['result'];
    const result = typeof kind === 'string' ? getOwn(PROBE_RESULTS, kind) : undefined;
    const container = attributes['container'];
    if (probe_type === undefined || result === undefined || pod === undefined || typeof container !== 'string') return;
    const { uid: pod_uid, name: podName, namespace } = pod;
    this.#probes.inc({ container, namespace, pod: podName, pod_uid, probe_type, result });
    // As the kubelet: a failure says little about how long an answer takes.
    if (result === 'failed') return;
    this.#probeSeconds.observe(durationMs / 1000, { container, namespace, pod: podName, probe_type });
  }

  #volume({ name, durationMs, outcome, attributes }: Span): void {
    if (name !== 'MountVolume.SetUp') return;
    const plugin = attributes['plugin'];
    const labels = {
      migrated: 'false',
      operation_name: 'volume_mount',
      status: outcome === 'ok' ? 'success' : 'fail-unknown',
      volume_plugin: typeof plugin === 'string' ? plugin : '',
    };
    this.#storage.observe(durationMs / 1000, labels);
  }

  /** Of pods' cgroups. */
  #cgroup({ name, durationMs, attributes }: Span): void {
    if (name !== 'ensurePod' && name !== 'removePod') return;
    const operation_type = name === 'removePod' ? 'destroy' : attributes['isNew'] === true ? 'create' : 'update';
    this.#cgroups.observe(durationMs / 1000, { operation_type });
  }
}
