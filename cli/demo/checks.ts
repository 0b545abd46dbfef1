// The claims of the demo: each one is printed with its evidence, and one that does not hold fails the demo.

export class Checks {
  readonly #say: (line: string) => void;
  #failed = 0;
  #passed = 0;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** Prints the evidence; `ok` false fails the demo. */
  check(ok: boolean, sentence: string, evidence = ''): void {
    if (ok) this.#passed++;
    else this.#failed++;
    this.#say(`  ${ok ? 'ok  ' : 'FAIL'} ${sentence}`);
    for (const line of evidence.trimEnd().split('\n')) if (line !== '') this.#say(`         | ${line}`);
  }

  get failed(): number {
    return this.#failed;
  }

  get passed(): number {
    return this.#passed;
  }
}
