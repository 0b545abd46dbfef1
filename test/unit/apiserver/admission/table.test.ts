// The order of plugins, the flags, and what a chain does with refusals.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { AdmissionChain } from '../../../../apiserver/admission/chain.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../../../../apiserver/admission/plugin.ts';
import { atOnce, type Steps, waiting } from '../../../../apiserver/admission/steps.ts';
import { chosenPlugins, PLUGINS } from '../../../../apiserver/admission/table.ts';
import { attributes, lookupOf, object, row } from '../kinds/support.ts';

const names = (rows: readonly { name: string }[]): string[] => rows.map(({ name }) => name);

/** kube-apiserver 1.34's list, in its order. */
const UPSTREAM = `AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology
  LimitRanger ServiceAccount NodeRestriction TaintNodesByCondition AlwaysPullImages ImagePolicyWebhook PodSecurity
  PodNodeSelector Priority DefaultTolerationSeconds PodTolerationRestriction EventRateLimit ExtendedResourceToleration
  DefaultStorageClass StorageObjectInUseProtection OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize
  RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction
  DefaultIngressClass DenyServiceExternalIPs PodTopologyLabels MutatingAdmissionPolicy MutatingAdmissionWebhook
  ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota AlwaysDeny`.split(/\s+/);

describe('the plugins', () => {
  it('are those of kube-apiserver, in its order', () => {
    expect(names(PLUGINS)).toEqual(UPSTREAM);
  });

  it('on by default are those that are here', () => {
    expect(names(chosenPlugins({}))).toEqual(
      names(PLUGINS.filter((plugin) => plugin.on && plugin.create !== undefined)),
    );
  });

  it('can be switched off', () => {
    const chosen = names(chosenPlugins({ disable: ['Priority', 'PodNodeSelector'], enable: ['ServiceAccount'] }));
    expect(chosen).not.toContain('Priority');
    expect(chosen).toContain('ServiceAccount');
  });

  it.each([
    [{ enable: ['NoSuch'] }, 'enable-admission-plugins plugin "NoSuch" is unknown'],
    [{ disable: ['NoSuch'] }, 'disable-admission-plugins plugin "NoSuch" is unknown'],
    [
      { enable: ['Priority', 'LimitRanger'], disable: ['Priority', 'LimitRanger'] },
      '[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped',
    ],
    [
      { enable: ['EventRateLimit'] },
      'enable-admission-plugins: EventRateLimit is a plugin of kube-apiserver that this server does not have',
    ],
  ])('%j is refused', (choice, message) => {
    expect(() => chosenPlugins(choice)).toThrow(message);
  });
});

describe('a chain', () => {
  const pods = row('pods');
  const plugin = (name: string, more: Partial<AdmissionPlugin>): AdmissionPlugin => ({
    name,
    handles: handlesOnly('', 'pods', 'CREATE'),
    ...more,
  });
  const create = (metadata: Record<string, unknown> = {}) =>
    attributes(pods, 'CREATE', object(pods, { metadata, spec: {} }));

  it('runs the plugins that handle a request, in order, each phase for itself', () => {
    const ran: string[] = [];
    const both = (name: string) =>
      plugin(name, {
        admit: () => void ran.push(`${name} admits`),
        validate: () => void ran.push(`${name} validates`),
      });
    const other = { ...both('B'), handles: handlesOnly('', 'services', 'CREATE') };
    const chain = new AdmissionChain([both('A'), other, both('C')], lookupOf());
    atOnce(chain.admit(create()));
    atOnce(chain.validate(create()));
    expect(ran).toEqual(['A admits', 'C admits', 'A validates', 'C validates']);
  });

  it.each([
    [{ name: 'web' }, 'pods "web" is forbidden: no'],
    [{ name: '', generateName: 'web-' }, 'pods "web-" is forbidden: no'],
    [{ name: '' }, 'pods "Unknown" is forbidden: no'],
  ])('refuses %j with 403', (metadata, message) => {
    const no = plugin('No', {
      admit: () => {
        throw new AdmissionForbidden('no');
      },
    });
    const attempt = () => atOnce(new AdmissionChain([no], lookupOf()).admit(create(metadata)));
    expect(attempt).toThrow(message);
  });

  it('waits for webhooks, but not in a write of the server itself', async () => {
    const calls: string[] = [];
    const hook = (phase: 'mutating' | 'validating') => ({
      name: phase,
      phase,
      plan: () => async () => {
        calls.push(phase);
        return calls.length === 1;
      },
    });
    const chain = new AdmissionChain([hook('mutating'), hook('validating')], lookupOf());
    atOnce(chain.admit(create()));
    expect(calls).toEqual([]);
    const ofClient = { ...create(), internal: false };
    await waiting(chain.admit(ofClient));
    await waiting(chain.validate(ofClient));
    expect(calls, 'the first call asked for another pass').toEqual(['mutating', 'mutating', 'validating']);
    expect(() => atOnce(chain.validate(ofClient))).toThrow('this write would have to wait');
  });
});

describe('steps', () => {
  it('see the failure of what they wait for', async () => {
    function* steps(): Steps<string> {
      try {
        yield () => Promise.reject(new Error('late'));
      } catch (error) {
        return `caught ${error instanceof Error ? error.message : ''}`;
      }
      return 'not reached';
    }
    expect(await waiting(steps())).toBe('caught late');
  });
});

describe('docs/apiserver.md', () => {
  it('has a row for each plugin, with whether it is here', () => {
    const rows = [...readFileSync('docs/apiserver.md', 'utf8').matchAll(/^\| (\w+) \| (on|off) \| (yes|no) \|/gm)];
    const documented = rows.map(([, name, upstream, here]) => ({ name, upstream, here }));
    expect(documented).toEqual(
      PLUGINS.map(({ name, on, create }) => ({
        name,
        upstream: on && name !== 'NodeRestriction' ? 'on' : 'off',
        here: create === undefined ? 'no' : 'yes',
      })),
    );
  });
});
