import { describe, expect, test } from 'vitest';
import { expandVariables } from '../../../lib/expand.ts';

const VALUES: Readonly<Record<string, string>> = { NAME: 'world', EMPTY: '', NESTED: '$(NAME)', 'a.b': 'dotted' };

describe('$(VAR) expansion', () => {
  test.each([
    ['a known name is replaced', 'hello $(NAME)', 'hello world'],
    ['an empty value is a value', '[$(EMPTY)]', '[]'],
    ['an unknown name stays as written', '$(NOBODY) x', '$(NOBODY) x'],
    ['two dollars are one, and end the reference', '$$(NAME)', '$(NAME)'],
    ['three dollars are one and a reference', '$$$(NAME)', '$world'],
    ['what a value contains is not expanded again', '$(NESTED)', '$(NAME)'],
    ['an unclosed reference is literal', 'a $(NAME', 'a $(NAME'],
    ['a lone dollar at the end is literal', 'cost: 5$', 'cost: 5$'],
    ['a dollar before anything else is literal', '$NAME $5', '$NAME $5'],
    ['an empty name is unknown', '$()', '$()'],
    ['several on one line', '$(NAME)-$(a.b)-$(NAME)', 'world-dotted-world'],
    ['no dollar, no change', 'plain', 'plain'],
  ])('%s', (_rule, text, expected) => {
    expect(expandVariables(text, (name) => VALUES[name])).toBe(expected);
  });
});
