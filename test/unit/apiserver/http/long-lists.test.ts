// Lists that are longer than what is read and sent in one turn, in each form, over real connections.

import { once } from 'node:events';
import { request } from 'node:https';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { at, TestApiServer } from '../../../support/api-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const COUNT = 60;
const TEXT = 'ü'.repeat(15_000);
const names = Array.from({ length: COUNT }, (_, index) => `map-${String(index).padStart(2, '0')}`);
let stand: TestApiServer;

beforeAll(async () => {
  stand = await TestApiServer.start();
  for (const name of names) await stand.admit('POST', MAPS, { metadata: { name }, data: { text: TEXT } });
});
afterAll(() => stand.stop());

const get = (accept: string, query = '') =>
  stand.call({ path: `${MAPS}${query}`, as: stand.admin, headers: { accept } });
const itemsOf = (list: unknown, field = 'items'): unknown[] => {
  const items = at(list, field);
  return Array.isArray(items) ? items : [];
};
const namesOf = (items: unknown[]): unknown[] => items.map((item) => at(item, 'metadata', 'name'));

it('as JSON, whole and readable', async () => {
  const { json, text } = await get('application/json');
  expect(namesOf(itemsOf(json))).toEqual(names);
  expect(itemsOf(json).map((item) => at(item, 'data', 'text'))).toEqual(names.map(() => TEXT));
  expect(text.endsWith(']}\n')).toBe(true);
  const pretty = await get('application/json', '?pretty=true');
  expect(pretty.text).toContain('\n  "items": [\n');
  // The server itself may have written between the two: the list's revision is not compared.
  expect(itemsOf(pretty.json)).toEqual(itemsOf(json));
});

it('as YAML, as metadata and as a table', async () => {
  const yaml = await get('application/yaml');
  expect(namesOf(itemsOf(parse(yaml.text)))).toEqual(names);
  const partial = await get('application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1');
  expect(namesOf(itemsOf(partial.json))).toEqual(names);
  const table = await get('application/json;as=Table;g=meta.k8s.io;v=v1');
  expect(at(table.json, 'kind')).toBe('Table');
  expect(itemsOf(table.json, 'rows').map((row) => at(row, 'cells', 0))).toEqual(names);
  expect(itemsOf(table.json, 'columnDefinitions').length).toBeGreaterThan(1);
});

it('in pages, each longer than a turn', async () => {
  const first = await get('application/json', '?limit=40');
  expect([itemsOf(first.json).length, at(first.json, 'metadata', 'remainingItemCount')]).toEqual([40, COUNT - 40]);
  const token = encodeURIComponent(String(at(first.json, 'metadata', 'continue')));
  const rest = await get('application/json', `?limit=40&continue=${token}`);
  expect(namesOf([...itemsOf(first.json), ...itemsOf(rest.json)])).toEqual(names);
});

it('a client that leaves in the middle disturbs no other', async () => {
  const { cert, key } = stand.admin;
  const tls = { ca: stand.server.pki.ca.cert, ...(cert && key ? { cert, key } : {}) };
  const outgoing = request(`${stand.server.url}${MAPS}`, { ...tls, agent: false });
  outgoing.end();
  const [response] = await once(outgoing, 'response');
  await once(response, 'data');
  outgoing.destroy();
  const { code, json } = await get('application/json');
  expect([code, itemsOf(json).length]).toEqual([200, COUNT]);
});
