// What others than the agent write into pods' statuses.

/** Its type; the agent must leave it as it is. */
export const FOREIGN_CONDITION = 'example.com/gate';

/** A condition that others keep on the Node, as a cloud's route controller does. */
export const FOREIGN_NODE_CONDITION = 'NetworkUnavailable';
