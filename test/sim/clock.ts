// The virtual clock of the simulated node, for tests.

export { settle, turn, VirtualClock } from '../../labs/sim/clock.ts';
