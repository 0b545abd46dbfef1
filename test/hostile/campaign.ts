// What one part of the hostile tester's run is: a number of rounds of bad input, and figures of what came of them. Types
// only; main.ts runs every file in campaigns/, hostile.test.ts runs each with few rounds.

/** What was done to nodelet and what it did; docs/security.md shows these. */
export interface Figures {
  /** Requests, trees, faults or kills that were tried. */
  readonly tried: number;
  /** Those that were refused, by name and with the right status, where refusal is the right answer. */
  readonly refused: number;
  /** Processes that ended or hung without being killed, and requests answered with an internal error. */
  readonly crashed: number;
  /** Data that was lost or damaged, and secrets that were read by who must not read them. */
  readonly lost: number;
}

export interface CampaignContext {
  /** How much to do; a campaign says in `what` what one round is. */
  readonly rounds: number;
  /** Everything random comes from this, so that a run can be made again. */
  readonly seed: number;
  /** An empty directory of this campaign's own, below /tmp. The campaign unmounts what it mounts there. */
  readonly directory: string;
  /** Progress, and each failure with what is needed to repeat it. */
  readonly log: (line: string) => void;
}

export interface Campaign {
  /** One word, the file's name: "trees". */
  readonly name: string;
  /** One sentence for the table: what is tried, and what one round is. */
  readonly what: string;
  /** Rounds in `npm test`: some seconds at most. 0 where the campaign needs minutes. */
  readonly quickRounds: number;
  /** Rounds of `npm run test:hostile`. */
  readonly rounds: number;
  /**
   * Rejects only where the campaign itself cannot go on. What nodelet does wrong is counted in `crashed` and `lost`,
   * and logged.
   */
  run(context: CampaignContext): Promise<Figures>;
}
