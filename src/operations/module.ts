import { createOpenSockets } from '#http/open-sockets.ts'
import { type Foundation, module } from '#module.ts'
import { operationsEndpoints } from './endpoints.ts'

/** Probes, metrics, and the open WebSockets of this process. */
export const operationsModule = module({
  name: 'operations',
  tags: { Operations: 'Health checks, metrics and documentation.' },
  start({ metrics }: Foundation) {
    const sockets = createOpenSockets()
    const gauge = (name: string, help: string, read: () => number) =>
      metrics.gauge({ name: `sluice_websockets_${name}`, help }, read)
    gauge('open', 'Open WebSockets.', sockets.count)
    gauge('busy', 'WebSockets with work in progress or unsent bytes.', sockets.busy)
    return { services: { sockets } }
  },
  endpoints: (services: Foundation) => operationsEndpoints(services),
})
