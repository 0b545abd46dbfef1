// What others than the agent write into pods' statuses.

/** Its type; the agent must leave it as it is. */
export const FOREIGN_CONDITION = 'example.com/gate';
