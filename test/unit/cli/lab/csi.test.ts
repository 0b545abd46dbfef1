import { describe, expect, it } from 'vitest';
import { csiObjects, STORAGE_CLASSES } from '../../../../cli/lab/csi.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { controlplaneProgram, csiDriverProgram } from '../../../../cli/lab/programs.ts';
import type { LabState } from '../../../../cli/lab/state.ts';

const paths = labPaths('/tmp/a');
const state = (csi?: LabState['csi']): LabState => ({
  version: 1,
  nodeName: 'n1',
  apiserverPort: 1,
  kubeletPort: 2,
  subnet: '10.244.1.0/24',
  network: 'agent',
  firewall: { chains: { ipv4: [], ipv6: [] } },
  madeDirectories: [],
  ...(csi === undefined ? {} : { csi }),
});

describe('a lab with a CSI driver', () => {
  const flagOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1];

  it('starts the driver in the agent’s plugins_registry, and configures the control plane with the same socket', () => {
    const csi = { flags: ['--attach'] };
    const driver = csiDriverProgram(paths, state(csi)).args;
    const endpoint = flagOf(driver, '--endpoint');
    expect(endpoint).toBe('unix:///tmp/a/kubelet/plugins/loop.csi.nodelet/csi.sock');
    expect(flagOf(driver, '--registration-dir')).toBe('/tmp/a/kubelet/plugins_registry');
    expect([flagOf(driver, '--node-id'), driver.at(-1)]).toEqual(['n1', '--attach']);
    const args = controlplaneProgram(paths, state(csi)).args;
    expect(flagOf(args, '--csi-endpoint')).toBe(`loop.csi.nodelet=${endpoint}`);
  });
  it('without one configures the control plane with none', () => {
    expect(controlplaneProgram(paths, state()).args).not.toContain('--csi-endpoint');
  });
  it.each([
    [[], false],
    [['--attach'], true],
  ])('with the flags %j has a CSIDriver that requires attachment: %s', (flags, attachRequired) => {
    expect(csiObjects({ flags })[0]?.object).toMatchObject({
      kind: 'CSIDriver',
      spec: { attachRequired, storageCapacity: true },
    });
  });
  it('has one default class, and classes that wait for the first pod', () => {
    const classes = csiObjects({ flags: [] })
      .slice(1)
      .map((each) => each.object);
    expect(classes.map((each) => each.metadata.name)).toEqual([...STORAGE_CLASSES]);
    expect(classes.filter((each) => 'annotations' in each.metadata)).toHaveLength(1);
    for (const each of classes)
      expect(each).toMatchObject({ volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Delete' });
  });
});
