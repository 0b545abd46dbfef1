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

/** What a run's rounds measured, by the name of the figure; a round may leave figures out. */
export class Rounds<Name extends string> {
  readonly #rounds: Partial<Record<Name, number>>[] = [];

  add(found: Partial<Record<Name, number>>): void {
    this.#rounds.push(found);
  }

  samples(name: Name): readonly number[] {
    return this.#rounds.map((round) => round[name]).filter((value) => value !== undefined);
  }

  /** Those of the rounds that have both, so that each sample has its own round's floor. */
  pairs(name: Name, floorName: Name): { readonly samples: readonly number[]; readonly floor: readonly number[] } {
    const both = this.#rounds.flatMap(({ [name]: value, [floorName]: floor }) =>
      value === undefined || floor === undefined ? [] : [{ value, floor }],
    );
    return { samples: both.map(({ value }) => value), floor: both.map(({ floor }) => floor) };
  }
}

/** "floor 212, start 240": one round's figures, for people to follow. */
export function roundText(found: Readonly<Record<string, number | undefined>>): string {
  return Object.entries(found)
    .map(([name, value]) => `${name} ${value?.toFixed(0) ?? '-'}`)
    .join(', ');
}
