// Shuffle sharding: which queues a flow may use. Two flows share all of their queues hardly ever, so a flow that fills
// its own leaves others a way. Pure; the same hands as kube-apiserver deals.

import { hash } from 'node:crypto';

/** 64 bits of a flow. */
export function flowHash(schema: string, distinguisher: string): bigint {
  return hash('sha256', `${schema}\0${distinguisher}`, 'buffer').readBigUInt64LE(0);
}

/** `handSize` different numbers below `deckSize`, drawn by the hash. */
export function dealHand(value: bigint, deckSize: number, handSize: number): number[] {
  const hand: number[] = [];
  const taken: number[] = [];
  let rest = value;
  for (let drawn = 0; drawn < handSize; drawn++) {
    const left = BigInt(deckSize - drawn);
    let card = Number(rest % left);
    rest /= left;
    // The card's place among those that are left, as its place in the whole deck.
    for (const other of taken) if (card >= other) card++;
    hand.push(card);
    taken.push(card);
    taken.sort((a, b) => a - b);
  }
  return hand;
}
