import { type Foundation, module } from '#module.ts'
import { consoleEndpoints } from './endpoints.ts'

/** The web page of the gateway. Its sources are in `console`. */
export const consoleModule = module({
  name: 'console',
  tags: { Console: 'The web page of the gateway.' },
  endpoints: (services: Foundation) => consoleEndpoints(services),
})
