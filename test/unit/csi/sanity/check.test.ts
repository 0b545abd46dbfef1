import { describe, expect, it } from 'vitest';
import { CsiError } from '../../../../csi/client.ts';
import type { Abilities, Need } from '../../../../csi/sanity/abilities.ts';
import { refused } from '../../../../csi/sanity/bench.ts';
import { section, unmet } from '../../../../csi/sanity/check.ts';
import { ALL_CHECKS } from '../../../../csi/sanity/run.ts';

const abilities: Abilities = {
  plugin: new Set(['CONTROLLER_SERVICE']),
  controller: new Set(['CREATE_DELETE_VOLUME']),
  node: new Set([]),
  accessType: 'mount',
  secondNode: false,
  fewVolumes: true,
};

describe('a check', () => {
  it.each<[readonly Need[], readonly Need[]]>([
    [[], []],
    [['controller:CREATE_DELETE_VOLUME', 'mount', 'few volumes'], []],
    [['!node:STAGE_UNSTAGE_VOLUME'], []],
    [['block'], ['block']],
    [
      ['second node', 'node:GET_VOLUME_STATS'],
      ['second node', 'node:GET_VOLUME_STATS'],
    ],
    [['!plugin:CONTROLLER_SERVICE'], ['!plugin:CONTROLLER_SERVICE']],
  ])('that needs %j lacks %j', (needs, lacking) => {
    const [check] = section('X', needs, { 'is tried': async () => {} });
    if (check === undefined) throw new Error('there is one check');
    expect(unmet(check, abilities)).toEqual(lacking);
  });
  it('has a name of its own', () => {
    const names = ALL_CHECKS.map((each) => `${each.section} ${each.name}`);
    expect(new Set(names).size).toBe(names.length);
  });
  it('there is for every RPC of the three services', () => {
    const sections = new Set(ALL_CHECKS.map((each) => each.section.split(' ')[0]));
    expect([...sections].sort()).toEqual(
      [
        ...['GetPluginInfo', 'GetPluginCapabilities', 'Probe'],
        ...[
          'CreateVolume',
          'DeleteVolume',
          'ControllerPublishVolume',
          'ControllerUnpublishVolume',
          'ValidateVolumeCapabilities',
        ],
        ...[
          'ListVolumes',
          'GetCapacity',
          'ControllerGetCapabilities',
          'CreateSnapshot',
          'DeleteSnapshot',
          'ListSnapshots',
          'GetSnapshot',
        ],
        ...['ControllerExpandVolume', 'ControllerGetVolume', 'ControllerModifyVolume'],
        ...[
          'NodeStageVolume',
          'NodeUnstageVolume',
          'NodePublishVolume',
          'NodeUnpublishVolume',
          'NodeGetVolumeStats',
          'NodeExpandVolume',
        ],
        ...['NodeGetCapabilities', 'NodeGetInfo'],
      ].sort(),
    );
  });
});

describe('a refusal', () => {
  it.each([
    ['is the expected one', () => Promise.reject(new CsiError('NOT_FOUND', 'no such volume', 'X')), undefined],
    ['is another', () => Promise.reject(new CsiError('INTERNAL', 'broken', 'X')), /not INTERNAL/],
    ['has no words', () => Promise.reject(new CsiError('NOT_FOUND', ' ', 'X')), /no message/],
    ['did not happen', () => Promise.resolve({}), /succeeded/],
    ['is no answer at all', () => Promise.reject(new Error('the socket broke')), /socket broke/],
  ])('that %s', async (_what, call, words) => {
    const result = refused('NOT_FOUND', call());
    if (words === undefined) await result;
    else await expect(result).rejects.toThrow(words);
  });
});
