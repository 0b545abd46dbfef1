export async function demoOnThisMachine(_root: string): Promise<number> {
  return 1;
}
