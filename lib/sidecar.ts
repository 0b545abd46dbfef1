// What makes an init container a native sidecar (KEP-753). Used by the agent, the API server and the controllers.

/** Whether an init container keeps running beside the others, for as long as its pod does. */
export function isSidecar(initContainer: { readonly restartPolicy?: string | undefined }): boolean {
  return initContainer.restartPolicy === 'Always';
}
