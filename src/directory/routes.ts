import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import type { Directory } from './directory.ts'
import { groupRoutes } from './groups/routes.ts'
import { meRoutes } from './me/routes.ts'
import { memberRoutes } from './members/routes.ts'
import { serviceAccountRoutes } from './service-accounts/routes.ts'
import { userRoutes } from './users/routes.ts'

export type DirectoryRoutesDeps = {
  auth: Pick<Auth, 'authenticate'>
  directory: Directory
  config: Pick<Config, 'limits'>
  now: () => Date
}

/** Users, service accounts and groups, and who the caller is. */
export function directoryRoutes({ directory, ...deps }: DirectoryRoutesDeps) {
  const all = { ...deps, ...directory }
  return new Elysia({ name: 'directory' })
    .use(meRoutes(all))
    .use(groupRoutes(all))
    .use(memberRoutes(all))
    .use(userRoutes(all))
    .use(serviceAccountRoutes(all))
}
