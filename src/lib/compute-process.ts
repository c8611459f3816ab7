import { setPriority } from 'node:os'

/** How the gateway tells its compute processes their nice value. */
export const niceVariable = 'SLUICE_COMPUTE_NICE'

/**
 * Makes this process one that computes for the gateway: it ends with the gateway, and its priority is
 * lower, so that the gateway stays responsive.
 */
export function serveGateway(): void {
  // Native threads may be running, and there is no state to save.
  const end = () => process.kill(process.pid, 'SIGKILL')
  process.on('disconnect', end)
  if (!process.connected) end()
  // A signal to the process group is for the gateway, which stops its children itself.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  // biome-ignore lint/style/noProcessEnv: a compute process does not load the configuration
  setPriority(Number(process.env[niceVariable] ?? 0))
}
