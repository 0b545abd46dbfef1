// Runs the plugins of a server over a request, in their order. Knows no plugin; which there are is table.ts.

import { StatusError } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { AdmissionDurations, Phase } from './durations.ts';
import {
  type AdmissionAttributes,
  AdmissionForbidden,
  type AdmissionPlugin,
  type AwaitedObject,
  type RemotePlugin,
  refusalOf,
} from './plugin.ts';
import { converting, type Steps } from './steps.ts';

/** A refusal that the coming of another object would turn: carries what to wait for. */
export class PendingRefusal extends StatusError {
  readonly waitFor: AwaitedObject;
  constructor({ status }: StatusError, waitFor: AwaitedObject) {
    super(status.code, status.reason ?? '', status.message ?? '', status.details);
    this.waitFor = waitFor;
  }
}

type Plugin = AdmissionPlugin | RemotePlugin;

interface Selected {
  readonly mutating: readonly Plugin[];
  readonly validating: readonly Plugin[];
}

const isRemote = (plugin: Plugin): plugin is RemotePlugin => 'plan' in plugin;

export class AdmissionChain {
  readonly #plugins: readonly Plugin[];
  readonly #lookup: ObjectLookup;
  readonly #selected = new Map<string, Selected>();

  readonly #durations: AdmissionDurations | undefined;

  /** `plugins` in the order in which they run. */
  constructor(plugins: readonly Plugin[], lookup: ObjectLookup, durations?: AdmissionDurations) {
    this.#plugins = plugins;
    this.#lookup = lookup;
    this.#durations = durations;
  }

  get names(): string[] {
    return this.#plugins.map(({ name }) => name);
  }

  /** The mutating phase: changes the object in place. */
  *admit(attributes: AdmissionAttributes): Steps<void> {
    const { mutating } = this.#select(attributes);
    if (yield* this.#pass(mutating, attributes, 'admit')) yield* this.#pass(mutating, attributes, 'admit');
  }

  /** The validating phase, of an object that is complete and valid. */
  *validate(attributes: AdmissionAttributes): Steps<void> {
    yield* this.#pass(this.#select(attributes).validating, attributes, 'validate');
  }

  /** Returns whether a webhook's change calls for another pass. */
  *#pass(plugins: readonly Plugin[], attributes: AdmissionAttributes, phase: Phase): Steps<boolean> {
    const began = this.#durations?.now();
    let again = false;
    let isRejected = true;
    try {
      for (const plugin of plugins) again = (yield* this.#run(plugin, attributes, phase)) || again;
      isRejected = false;
    } catch (error) {
      if (!(error instanceof AdmissionForbidden)) throw error;
      const refusal = refusalOf(attributes, error.message);
      throw error.waitFor === undefined ? refusal : new PendingRefusal(refusal, error.waitFor);
    } finally {
      if (began !== undefined) this.#durations?.observe('', phase, attributes.operation, isRejected, began);
    }
    return again;
  }

  /** One plugin's part. */
  *#run(plugin: Plugin, attributes: AdmissionAttributes, phase: Phase): Steps<boolean> {
    const began = this.#durations?.now();
    let again = false;
    let isRejected = true;
    try {
      if (isRemote(plugin)) {
        const call = attributes.internal ? undefined : yield* converting(() => plugin.plan(attributes, this.#lookup));
        if (call !== undefined) {
          yield async () => {
            again = await call();
          };
        }
      } else if (phase === 'admit') plugin.admit?.(attributes, this.#lookup);
      else yield* converting(() => plugin.validate?.(attributes, this.#lookup));
      isRejected = false;
    } finally {
      if (began !== undefined) this.#durations?.observe(plugin.name, phase, attributes.operation, isRejected, began);
    }
    return again;
  }

  /** The plugins that handle such a request, found once for each operation and resource. */
  #select({ operation, resource }: AdmissionAttributes): Selected {
    const key = `${operation} ${resource.group}/${resource.plural}/${resource.subresource}`;
    const known = this.#selected.get(key);
    if (known !== undefined) return known;
    const local = (plugin: Plugin, phase: 'admit' | 'validate'): boolean =>
      !isRemote(plugin) && plugin[phase] !== undefined && plugin.handles(operation, resource);
    const remote = (plugin: Plugin, phase: RemotePlugin['phase']): boolean =>
      isRemote(plugin) && plugin.phase === phase;
    const selected = {
      mutating: this.#plugins.filter((plugin) => local(plugin, 'admit') || remote(plugin, 'mutating')),
      validating: this.#plugins.filter((plugin) => local(plugin, 'validate') || remote(plugin, 'validating')),
    };
    this.#selected.set(key, selected);
    return selected;
  }
}
