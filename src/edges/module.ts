import { createClientAddresses } from '#lib/client-address.ts'
import { type Foundation, module } from '#module.ts'

/** What stands between clients and the endpoints: proxies, and pages of other origins. */
export const edgesModule = module({
  name: 'edges',
  start: ({ config }: Foundation) => ({
    services: { clientAddresses: createClientAddresses(config.trustedProxies) },
  }),
})
