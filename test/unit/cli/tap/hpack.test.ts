// Header blocks as RFC 7541, appendix C, has them, and what is no header block.

import { expect, test } from 'vitest';
import { HpackDecoder, HpackError } from '../../../../cli/tap/hpack.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const GET = [':method', 'GET'];

const REQUESTS = [
  [GET, [':scheme', 'http'], [':path', '/'], [':authority', 'www.example.com']],
  [GET, [':scheme', 'http'], [':path', '/'], [':authority', 'www.example.com'], ['cache-control', 'no-cache']],
  [
    GET,
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ],
];

test.each([
  {
    name: 'without Huffman code (C.3)',
    blocks: [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
  },
  {
    name: 'with Huffman code (C.4)',
    blocks: [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
  },
])('requests of one connection $name', ({ blocks }) => {
  const decoder = new HpackDecoder();
  expect(blocks.map((block) => decoder.decode(hex(block)))).toEqual(REQUESTS);
});

test('a table of 256 bytes forgets its oldest entries (C.6)', () => {
  const decoder = new HpackDecoder();
  decoder.decode(hex('3fe1 01'));
  decoder.decode(
    hex(
      '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
    ),
  );
  expect(decoder.decode(hex('4883 640e ffc1 c0bf'))).toEqual([
    [':status', '307'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ]);
  expect(() => decoder.decode(hex('c2'))).toThrow(HpackError);
});

test('a literal that is never indexed leaves the table as it is (C.2.3)', () => {
  const decoder = new HpackDecoder();
  expect(decoder.decode(hex('1008 7061 7373 776f 7264 0673 6563 7265 74'))).toEqual([['password', 'secret']]);
  expect(() => decoder.decode(hex('be'))).toThrow(HpackError);
});

test.each([
  ['an index that is not there', 'ff 00'],
  ['index 0', '80'],
  ['a string that is cut off', '40 05 61'],
  ['a block that ends in a number', '7f'],
  ['a number without end', 'ff ff ff ff ff ff ff ff'],
  ['padding that is no part of EOS', '40 81 00 00'],
  ['a table of more than a MiB', '3f ff ff ff 01'],
])('%s is refused', (_, block) => {
  expect(() => new HpackDecoder().decode(hex(block))).toThrow(HpackError);
});
