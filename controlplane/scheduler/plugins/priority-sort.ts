// PrioritySort (QueueSort): pods of higher priority first, of the same priority the one that waits longer. Pure.

import type { Plugin } from '../framework/plugin.ts';

export const prioritySort: Plugin = {
  name: 'PrioritySort',
  compare: (a, b) => b.info.priority - a.info.priority || a.order - b.order,
};
