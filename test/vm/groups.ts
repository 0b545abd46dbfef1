// The groups of checks in a virtual machine, and which of them a run has. Pure.

export const DRIVERS = ['cgroupfs', 'systemd'] as const;
export const GROUPS = ['hierarchy', 'pods', 'docker', 'demo', 'volumes', 'experiment'] as const;

export interface GroupName {
  readonly name: string;
  readonly driver: string;
}

/** Whether `only` asks for a group: by its name, by its driver, by both when it has words of both kinds. */
export function chosen(group: GroupName, only: readonly string[]): boolean {
  const isChosen = (kinds: readonly string[], word: string): boolean =>
    only.includes(word) || !kinds.some((kind) => only.includes(kind));
  return isChosen(GROUPS, group.name) && isChosen(DRIVERS, group.driver);
}
