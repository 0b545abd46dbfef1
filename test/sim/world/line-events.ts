// What goes wrong between the agent and what it talks to: calls fail, networks and drivers die, watches break, mounts are
// busy. Each for a while.

import type { Chooser, Happening } from './chooser.ts';
import type { World } from './world.ts';

export type LineName = keyof World['lines'];

/**
 * `usualTrouble`: what each line goes back to, and how deadly it usually is for the driver to stage; `isOver`: nothing
 * goes wrong any more.
 */
export function lineEvents(
  choose: Chooser,
  usualTrouble: Readonly<Record<LineName | 'deadly', number>>,
  isOver: () => boolean,
) {
  const { world, dice } = choose;
  const { lines, network, runtime, api, kernel, csi, manifests } = world;
  const forAWhile = (begin: () => void, end: () => void): string => {
    const ms = dice.pick([50, 2_000, 30_000]);
    begin();
    world.clock.after(ms, () => {
      if (!isOver()) end();
    });
    return `for ${ms} ms`;
  };
  return {
    badLine: () => {
      const name = dice.weighted({ cri: 6, cni: 2, api: 3, cgroups: 1, mounts: 2, csi: 3, objects: 1 });
      const trouble = dice.pick([5, 30, 90]);
      const during = (percent: number) => (): void => {
        lines[name].trouble = percent;
      };
      return `${name} ${trouble} ${forAWhile(during(trouble), during(usualTrouble[name]))}`;
    },
    streamsBreak: () => {
      runtime.events.break('the connection is closing');
      return '';
    },
    badNetwork: () => {
      const during = (percent: number) => (): void => {
        network.trouble = percent;
      };
      return forAWhile(during(50), during(0));
    },
    badEvents: () => {
      const during = (percent: number) => (): void => {
        runtime.events.trouble = percent;
        manifests.trouble = percent;
      };
      return forAWhile(during(dice.pick([20, 100])), during(0));
    },
    badWatch: () => {
      const during = (percent: number) => (): void => {
        api.watchTrouble = percent;
      };
      return forAWhile(during(60), during(0));
    },
    busyMounts: () => {
      const during = (busy: boolean) => (): void => {
        kernel.busy = busy;
        world.weather.bad();
      };
      return forAWhile(during(true), during(false));
    },
    csiIsDeadly: () => {
      const during = (percent: number) => (): void => {
        csi.deadly = percent;
      };
      return forAWhile(during(80), during(usualTrouble.deadly));
    },
    csiDies: () => {
      const downMs = dice.pick([5, 800, 40_000]);
      world.restartDriver(downMs);
      return String(downMs);
    },
    watchBreaks: () => {
      const forget = dice.chance(0.3);
      api.breakWatches(forget);
      return String(forget);
    },
    apiDown: () =>
      forAWhile(
        () => api.goDown(),
        () => {
          api.line.down = false;
        },
      ),
  } satisfies Record<string, Happening>;
}
