import { describe, expect, test } from 'vitest';
import { highestSupportedVersion, showVersion } from '../../../csi/versions.ts';

describe('of the versions that a driver offers', () => {
  test.each([
    [['1.0.0'], '1.0.0'],
    [['v1.3.0', '1.1.0'], '1.3.0'],
    [['1.9.0', '1.10.0'], '1.10.0'],
    [['0.3.0', '1.0.0'], '1.0.0'],
    [['2.0.0', '1.2.0'], '1.2.0'],
    [['1.5.0-rc1', 'rubbish'], '1.5.0'],
    [['1.2'], '1.2.0'],
  ])('%j the one spoken is %s', (versions, version) => {
    expect(showVersion(highestSupportedVersion(versions))).toBe(version);
  });

  test.each([
    [[], 'empty list for supported versions'],
    [['0.3.0'], 'None of the versions specified ["0.3.0"] are supported'],
    [['2.0.0', 'one'], 'None of the versions specified ["2.0.0" "one"] are supported'],
  ])('%j none is supported, with the reason', (versions, words) => {
    expect(() => highestSupportedVersion(versions)).toThrow(words);
  });
});
