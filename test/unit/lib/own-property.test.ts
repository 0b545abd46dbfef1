import { describe, expect, it } from 'vitest';
import { getOwn, setOwn } from '../../../lib/own-property.ts';

const INHERITED = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__', '__defineGetter__'];

describe('own properties', () => {
  it.each(INHERITED)('%s is absent until it is set, and ordinary afterwards', (name) => {
    const object: Record<string, string> = {};
    expect(getOwn(object, name)).toBeUndefined();
    setOwn(object, name, 'x');
    expect(getOwn(object, name)).toBe('x');
    expect(JSON.stringify(object)).toBe(`{"${name}":"x"}`);
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
  });

  it('has nothing in no object', () => expect(getOwn(undefined, 'a')).toBeUndefined());
});
