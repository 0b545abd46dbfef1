import { describe, expect, it } from 'vitest';
import {
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  parseSelection,
} from '../../../../apiserver/registry/selectors.ts';
import { body, failureOf, pods } from '../support.ts';

const LABELS = { app: 'web', tier: 'front', count: '5', empty: '' };

describe('a label selector', () => {
  const cases: readonly [string, boolean][] = [
    ['', true],
    ['app=web', true],
    ['app==web', true],
    ['app = web', true],
    ['app=db', false],
    ['app!=db', true],
    ['app!=web', false],
    ['other!=web', true],
    ['app in (web, db)', true],
    ['app in (db)', false],
    ['app notin (db)', true],
    ['other notin (db)', true],
    ['app', true],
    ['other', false],
    ['!other', true],
    ['!app', false],
    ['empty=', true],
    ['count>4', true],
    ['count>5', false],
    ['count<10', true],
    ['other>1', false],
    ['app=web,tier in (front,back),!other', true],
    ['app=web,tier=back', false],
    ['constructor', false],
  ];
  for (const [selector, expected] of cases) {
    it(`"${selector}" ${expected ? 'matches' : 'does not match'} app=web tier=front count=5`, () => {
      expect(matchesLabels(parseLabelSelector(selector), LABELS)).toBe(expected);
    });
  }
  for (const selector of ['app in web', '=x', 'app=a b', 'a>x', 'app=-bad-', ',', 'app in (', '-x']) {
    it(`"${selector}" is refused with 400`, () => expect(failureOf(() => parseLabelSelector(selector)).code).toBe(400));
  }
});

describe('a field selector', () => {
  it('reads =, == and != and undoes escapes', () => {
    expect(parseFieldSelector('a=1,b==2,c!=x\\,y')).toEqual([
      { field: 'a', value: '1', equal: true },
      { field: 'b', value: '2', equal: true },
      { field: 'c', value: 'x,y', equal: false },
    ]);
  });
  it('is refused with 400 when it has no operator', () => {
    expect(failureOf(() => parseFieldSelector('abc')).code).toBe(400);
  });
  it('is refused for a field that is not selectable', () => {
    const failure = failureOf(() => parseSelection(pods, '', 'spec.image=x'));
    expect(failure).toMatchObject({ code: 400, message: 'field label not supported: spec.image' });
  });
  const pod = body('Pod', { name: 'a', namespace: 'ns' }, { spec: { nodeName: 'n1' } });
  const cases: readonly [string, boolean][] = [
    ['spec.nodeName=n1', true],
    ['spec.nodeName!=n1', false],
    ['spec.nodeName=', false],
    ['metadata.name=a,metadata.namespace=ns', true],
    ['metadata.name=b', false],
  ];
  for (const [selector, expected] of cases) {
    it(`"${selector}" ${expected ? 'matches' : 'does not match'} ns/a on n1`, () => {
      expect(parseSelection(pods, '', selector).matches(pod)).toBe(expected);
    });
  }
});
