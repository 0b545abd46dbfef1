// Whether an expression reads a field of a variable, wherever in it: `claims.email`, `has(claims.email)`, `claims.?email`.

import { identifierOf, isNode, nodesOf } from './library.ts';

/** `root` is a tree that has been checked. Not for `claims["email"]`, as upstream. */
export function selectsField(root: object, variable: string, field: string): boolean {
  for (const { node } of nodesOf(root)) {
    if (!isNode(node) || (node.op !== '.' && node.op !== '.?') || !Array.isArray(node.args)) continue;
    const [operand, name]: unknown[] = node.args;
    if (name === field && isNode(operand) && identifierOf(operand) === variable) return true;
  }
  return false;
}
