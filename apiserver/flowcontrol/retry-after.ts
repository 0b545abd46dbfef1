// After how many seconds a client that was refused should come again: longer while a priority level refuses many, as
// kube-apiserver's dropped_requests_tracker.go does it. The times are whole seconds.

const MOST = 32;

export class RetryAfter {
  /** Refusals by second, oldest first; the last one is the second under way. */
  #history: { readonly second: number; count: number }[] = [];
  #seconds = 1;
  #raisedIn = 0;

  get seconds(): number {
    return this.#seconds;
  }

  /** One more was refused. */
  refused(second: number): void {
    const last = this.#history.at(-1);
    if (last?.second === second) {
      last.count++;
      return;
    }
    this.#history.push({ second, count: 1 });
    const kept = Math.min(MOST, 2 * this.#seconds);
    this.#history = this.#history.filter((entry) => second - entry.second <= kept);
    this.#update(second);
  }

  /** Doubles after three refusals a second, and goes back by one when there is less than one a second. */
  #update(second: number): void {
    const seconds = this.#seconds;
    const recent = this.#history.filter((entry) => entry.second < second && second - entry.second <= seconds);
    const count = recent.reduce((sum, entry) => sum + entry.count, 0);
    if (second - this.#raisedIn >= seconds && count >= 3 * seconds) {
      this.#seconds = Math.min(MOST, 2 * seconds);
      this.#raisedIn = second;
    } else if (count < seconds && seconds > 1) this.#seconds--;
  }
}
