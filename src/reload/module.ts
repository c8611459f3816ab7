import { type Foundation, module } from '#module.ts'
import { reloadEndpoints } from './endpoints.ts'

/** Reading the configuration file again without a restart. */
export const reloadModule = module({
  name: 'reload',
  endpoints: (services: Foundation) => reloadEndpoints(services),
})
