// Who is measured when: several sides take turns, and none is always the first of a round or always behind the same other. Pure.

/** The order of the sides in a round: each round begins with the next side, and every second turn goes backwards. */
export function turnsOf<T>(sides: readonly T[], round: number): readonly T[] {
  const first = round % sides.length;
  const turned = [...sides.slice(first), ...sides.slice(0, first)];
  return Math.floor(round / sides.length) % 2 === 0 ? turned : turned.reverse();
}

/**
 * Whether there is another round: round 0 warms up and is not counted, at least `least` counted ones are run whatever they
 * take, and then as many as there is time for, at most `most`. Times in ms.
 */
export function anotherRound(
  round: number,
  limits: { readonly least: number; readonly most: number; readonly until: number },
  now: number,
): boolean {
  if (round <= limits.least) return true;
  return round <= limits.most && now < limits.until;
}
