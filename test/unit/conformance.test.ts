// docs/conformance.md names upstream's conformance tests and what runs their behaviours here: each file and title is there.

import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LIFECYCLES } from '../e2e/conformance/kinds.ts';

interface Row {
  readonly upstream: string;
  readonly here: string;
}

const rows: readonly Row[] = readFileSync('docs/conformance.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| behaviour'))
  .map((line) => {
    const [, upstream = '', here = ''] = line.split(' | ');
    return { upstream, here: here.replace(/ \|$/, '') };
  });

/** "`lifecycle`: v1 Pod; `unit/a`: a title" → file and title of each. */
function testsOf(here: string): readonly { readonly file: string; readonly title: string }[] {
  return here.split(/; (?=`)/).map((each) => {
    const [, name = '', title = ''] = /^`([\w/-]+)`: (.+)$/.exec(each) ?? [];
    return { file: `test/${name.includes('/') ? name : `e2e/conformance/${name}`}.test.ts`, title };
  });
}

const present = rows.filter(({ here }) => !here.startsWith('missing: '));

test('upstream’s names are whole and stand once', () => {
  expect(rows.length).toBeGreaterThan(200);
  for (const { upstream } of rows) expect(upstream).toMatch(/^\[sig-[a-z-]+\] .+ \[Conformance\]$/);
  const names = rows.map(({ upstream }) => upstream);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test('each test that the page names exists', () => {
  const missing = present.flatMap(({ here }) =>
    testsOf(here).filter(({ file, title }) => {
      // Tests that several labs could run are in a file without `.test`.
      const path = existsSync(file) ? file : file.replace('.test.ts', '.ts');
      if (title === '' || !existsSync(path)) return true;
      const text = `${readFileSync(path, 'utf8')}${file.endsWith('/lifecycle.test.ts') ? LIFECYCLES.map(({ type }) => type).join('\n') : ''}`;
      return !text.includes(title);
    }),
  );
  expect(missing).toEqual([]);
});

test('what is missing has a reason', () => {
  for (const { here } of rows) expect(here).toMatch(/^(`|missing: \w)/);
});

/** Kinds that upstream has no conformance test for; they are taken through the lifecycle all the same. */
const BEYOND = [
  'autoscaling/v2 HorizontalPodAutoscaler',
  'networking.k8s.io/v1 NetworkPolicy',
  'rbac.authorization.k8s.io/v1 ClusterRole',
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding',
  'rbac.authorization.k8s.io/v1 Role',
  'rbac.authorization.k8s.io/v1 RoleBinding',
  'admissionregistration.k8s.io/v1 MutatingWebhookConfiguration',
  'admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration',
  'v1 LimitRange',
];

test('every kind of the lifecycle test is named', () => {
  const named = new Set(present.flatMap(({ here }) => testsOf(here).map(({ title }) => title)));
  const unnamed = LIFECYCLES.map(({ type }) => type).filter((type) => !named.has(type));
  expect(unnamed.toSorted()).toEqual(BEYOND.toSorted());
});
