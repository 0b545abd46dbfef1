import { expect, it, vi } from 'vitest';
import { deleteObject } from '../../../../apiserver/registry/delete.ts';
import { listObjects } from '../../../../apiserver/registry/list.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { parseSelection } from '../../../../apiserver/registry/selectors.ts';
import { Dice } from '../../../../labs/sim/dice.ts';
import { ADMIN, createPod, type Fixture, fixture, pods } from '../support.ts';

const NODES = ['n1', 'n2', 'n3', ''];

function list({ registry }: Fixture, node: string, limit = 0, continueToken = '') {
  const selection = parseSelection(pods, '', `spec.nodeName=${node}`);
  const at = { resourceVersion: '', resourceVersionMatch: '' };
  const page = listObjects(registry, pods, { namespace: 'ns', selection, limit, continueToken, ...at });
  return { names: page.items.map(({ object }) => object.metadata.name), token: page.continueToken };
}

/** What is stored, without an index. */
function stored({ registry }: Fixture, node: string): (string | undefined)[] {
  const all = [...registry.lookup.each('', 'pods', 'ns')];
  const on = all.filter(({ spec = {} }) => String(Reflect.get(Object(spec), 'nodeName') ?? '') === node);
  return on.map(({ metadata }) => metadata.name);
}

/** One of a few pods is created, moved to another node, or deleted. */
function change(f: Fixture, dice: Dice): void {
  const name = `pod-${dice.below(12)}`;
  const nodeName = NODES[dice.below(NODES.length)] ?? '';
  if (f.registry.find(pods, 'ns', name) === undefined) createPod(f, name, { spec: { nodeName } });
  else if (dice.below(3) === 0) deleteObject(f.registry, pods, 'ns', name, { dryRun: false, gracePeriodSeconds: 0 });
  else patchObject(f.registry, pods, 'ns', name, { spec: { nodeName } }, 'application/merge-patch+json', ADMIN);
}

it('lists by an indexed field are those of the stored objects after any changes, in the order of their names', () => {
  const f = fixture();
  const dice = new Dice(5);
  for (let step = 0; step < 300; step++) {
    change(f, dice);
    for (const node of NODES) expect(list(f, node).names).toEqual(stored(f, node));
  }
});

it('what a node reads of its pods does not grow with the other pods', () => {
  const f = fixture();
  for (let index = 0; index < 50; index++) createPod(f, `pod-${index}`, { spec: { nodeName: `n${index % 25}` } });
  const names = list(f, 'n7').names;
  const scan = vi.spyOn(f.store, 'scanAt');
  const get = vi.spyOn(f.store, 'get');
  expect(list(f, 'n7').names).toEqual(names);
  const found = [...f.registry.lookup.having('', 'pods', 'ns', 'spec.nodeName', 'n7')];
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['pod-32', 'pod-7']);
  expect(scan).not.toHaveBeenCalled();
  expect(get).toHaveBeenCalledTimes(4);
});

it('pages of such a list are of one revision', () => {
  const f = fixture();
  for (const name of ['a', 'b', 'c', 'd']) createPod(f, name, { spec: { nodeName: 'n1' } });
  const first = list(f, 'n1', 2);
  expect(first.names).toEqual(['a', 'b']);
  patchObject(f.registry, pods, 'ns', 'c', { spec: { nodeName: 'n2' } }, 'application/merge-patch+json', ADMIN);
  expect(list(f, 'n1', 2, first.token).names).toEqual(['c', 'd']);
});
