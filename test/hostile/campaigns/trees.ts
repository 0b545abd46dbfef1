// Trees that mislead a recursive removal: mounts of the same device in them, nested, read-only, of files, at names of any
// bytes; mounts that are made while it runs; directories that another process exchanges for links while it runs. What
// is behind a mount or a link is a user's data, and its checksum is compared after every round. Needs root.

import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage, isErrno } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import { MountPointError, removeTree } from '../../../lib/remove-tree.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { type Random, seededRandom } from '../random.ts';
import { bindMount, bytes, unmount } from '../trees/byte-paths.ts';
import { startSwapper } from '../trees/swapper.ts';
import { checksum, makeData, makeTree, type Tree } from '../trees/tree.ts';

/** Of a hundred rounds: one has mounts in the tree, one gets mounts meanwhile, the others race with links. */
const RACES_FOR_EACH = 50;

export const campaign: Campaign = {
  name: 'trees',
  what: 'recursive removal of trees with mounts of the same device in them, mounts made and links swapped while it runs; a round is one removal',
  quickRounds: 150,
  rounds: 10_400,
  async run(context) {
    // In memory: thousands of trees are made, which a disk takes many times as long for.
    const directory = join(context.directory, 'memory');
    mkdirSync(directory);
    await execOk('mount', ['-t', 'tmpfs', 'nodelet-hostile', directory]);
    try {
      return await new Trees({ ...context, directory }).run();
    } finally {
      // With what a round that failed has left mounted in it.
      await execOk('umount', ['--lazy', directory]);
    }
  },
};

class Trees {
  readonly #context: CampaignContext;
  readonly #random: Random;
  readonly #data: Buffer;
  #before: string;
  #tried = 0;
  #refused = 0;
  #crashed = 0;
  #lost = 0;

  constructor(context: CampaignContext) {
    this.#context = context;
    this.#random = seededRandom(context.seed);
    this.#data = bytes(join(context.directory, 'data'));
    makeData(this.#data);
    this.#before = checksum(this.#data);
  }

  async run(): Promise<Figures> {
    const { rounds } = this.#context;
    const quiet = Math.ceil(rounds / (RACES_FOR_EACH + 2));
    for (let round = 0; round < quiet; round++) await this.#withMounts(round);
    for (let round = 0; round < quiet; round++) await this.#mountsMeanwhile(round);
    await this.#swaps(Math.max(0, rounds - 2 * quiet));
    const [tried, refused, crashed, lost] = [this.#tried, this.#refused, this.#crashed, this.#lost];
    return { tried, refused, crashed, lost };
  }

  /** Whether the user's data is as it was. Once it is lost it is made again, for the next round. */
  #check(what: string): void {
    if (checksum(this.#data) === this.#before) return;
    this.#lost++;
    this.#context.log(`${what}: the data behind a mount or a link has changed`);
    makeData(this.#data);
    this.#before = checksum(this.#data);
  }

  #crash(what: string, error: unknown): void {
    this.#crashed++;
    this.#context.log(`${what}: ${errorMessage(error)}`);
  }

  /** Mounts are there before: the removal names one and removes nothing; without them it removes all. */
  async #withMounts(round: number): Promise<void> {
    const what = `mounts, round ${round}`;
    const top = join(this.#context.directory, 'tree');
    const tree = makeTree(bytes(top), this.#data, this.#random);
    const mounted = await this.#mountSome(tree);
    const before = checksum(bytes(top));
    this.#tried++;
    try {
      await removeTree(top);
      this.#crash(what, new Error('the tree was removed with mounts in it'));
    } catch (error) {
      if (error instanceof MountPointError) this.#refused++;
      else this.#crash(what, error);
    }
    this.#check(what);
    if (checksum(bytes(top)) !== before) this.#crash(what, new Error('something was removed beside a mount'));
    // The same without the look at the table: only what each directory shows by itself.
    await removeTree(top, { withoutTable: true }).catch((error: unknown) => {
      if (!(error instanceof MountPointError)) this.#crash(what, error);
    });
    this.#check(what);
    await unmountAll(mounted);
    await this.#finish(what, top);
  }

  /** One to three binds: of the data or a part of it, on directories and files, some read-only, some on each other. */
  async #mountSome(tree: Tree): Promise<Buffer[]> {
    const random = this.#random;
    const mounted: Buffer[] = [];
    for (let count = 1 + random.below(3); count > 0; count--) {
      const onFile = tree.files.length > 0 && random.below(4) === 0;
      const targets = onFile ? tree.files : tree.directories;
      const target = targets[random.below(targets.length)];
      // What a mount hides is not there to be mounted on.
      if (target === undefined || mounted.some((other) => bytes(target, '/').indexOf(bytes(other, '/')) === 0))
        continue;
      const source = bytes(this.#data, onFile ? '/deeper/three' : random.pick(['', '/deeper']));
      await bindMount(source, target, random.below(3) === 0);
      mounted.push(target);
      // One within the other: what is mounted has a directory to mount on.
      if (!onFile && random.below(3) === 0) {
        const inner = bytes(target, source.equals(this.#data) ? '/deeper' : '/still');
        await bindMount(bytes(this.#data, '/deeper/still'), inner);
        mounted.push(inner);
      }
    }
    return mounted;
  }

  /** The tree is wide enough for many turns of the event loop, in which directories become mount points. */
  async #mountsMeanwhile(round: number): Promise<void> {
    const what = `mounts meanwhile, round ${round}`;
    const top = join(this.#context.directory, 'tree');
    const width = 600;
    for (let index = 0; index < width; index++) {
      const directory = join(top, `${index % 20}`, `${index}`, 'inner');
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, 'file'), '');
    }
    const mounted: Buffer[] = [];
    const mounting = Array.from({ length: 4 }, async () => {
      const index = this.#random.below(width);
      const target = bytes(join(top, `${index % 20}`, `${index}`, this.#random.pick(['', 'inner'])));
      try {
        await bindMount(this.#data, target);
        mounted.push(target);
      } catch (error) {
        // The removal was there first.
        if (!/mount point does not exist|special device .* does not exist|No such file/.test(errorMessage(error)))
          throw error;
      }
    });
    this.#tried++;
    let refusal: unknown;
    try {
      await removeTree(top);
    } catch (error) {
      refusal = error;
    }
    await Promise.all(mounting);
    this.#check(what);
    if (refusal instanceof MountPointError) this.#refused++;
    else if (refusal !== undefined) this.#crash(what, refusal);
    await unmountAll(mounted);
    await this.#finish(what, top);
  }

  /** Another process exchanges directories on two levels for links to the data. */
  async #swaps(rounds: number): Promise<void> {
    if (rounds === 0) return;
    const top = join(this.#context.directory, 'tree');
    const data = this.#data.toString();
    const swapper = await startSwapper([
      [join(top, 'a', 'd'), join(top, 'a', 'l')],
      [join(top, 'a'), join(top, 'b')],
      [join(top, 'a', 'd', 'm'), join(top, 'a', 'd', 'l')],
    ]);
    let swaps = 0;
    try {
      for (let round = 0; round < rounds; round++) {
        // Made where no process exchanges anything: this would write through the links itself.
        const made = join(this.#context.directory, 'made');
        makeRaceTree(made, data);
        renameSync(made, top);
        this.#tried++;
        await this.#finish(`swapped links, round ${round}`, top, true);
      }
    } finally {
      swaps = await swapper.stop();
    }
    this.#context.log(`${swaps} exchanges of a directory for a link in ${rounds} removals`);
    if (swaps < rounds / 20) throw new Error(`only ${swaps} exchanges in ${rounds} removals: this was no race`);
  }

  /** Removes the tree, which has no mount, and checks the data. A process that is busy in it may delay that. */
  async #finish(what: string, top: string, contended = false): Promise<void> {
    for (let tries = 0; existsSync(top) || tries === 0; tries++) {
      try {
        await removeTree(top);
      } catch (error) {
        if (!contended || !isErrno(error, 'ENOTEMPTY') || tries > 200) this.#crash(what, error);
        if (!contended || tries > 200) break;
      }
    }
    this.#check(what);
  }
}

/** A mount may hide another that was made before it, whose turn then comes in another round. */
async function unmountAll(targets: readonly Buffer[]): Promise<void> {
  let left = [...targets];
  while (left.length > 0) {
    const results = await Promise.allSettled(left.map((target) => unmount(target)));
    const failed = left.filter((_, index) => results[index]?.status === 'rejected');
    const first = results.find((result) => result.status === 'rejected');
    if (failed.length === left.length && first !== undefined) throw first.reason;
    left = failed;
  }
}

/**
 * The directories have the data's names in them: a removal that follows a link finds them there. The names that are
 * exchanged are none of the data's, whatever way they are reached.
 */
function makeRaceTree(top: string, data: string): void {
  for (const directory of [join(top, 'a', 'd'), join(top, 'a', 'd', 'm')]) {
    mkdirSync(join(directory, 'deeper', 'still'), { recursive: true });
    for (const name of ['one', 'two', 'deeper/three', 'deeper/still/four']) writeFileSync(join(directory, name), '');
  }
  symlinkSync(data, join(top, 'a', 'l'));
  symlinkSync(data, join(top, 'a', 'd', 'l'));
  symlinkSync(data, join(top, 'b'));
}
