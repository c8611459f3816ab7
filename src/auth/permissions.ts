import { permissionNames } from '#config/schema.ts'

export type Permission = (typeof permissionNames)[number]

/** What every endpoint demands, whatever else it demands. */
export const basePermission = 'can_access_api' satisfies Permission

/** The groups that exist from the first start. */
export const shippedGroups: Readonly<Record<string, readonly Permission[]>> = {
  admins: permissionNames,
  users: [basePermission],
}

export function isPermission(name: string): name is Permission {
  const known: readonly string[] = permissionNames
  return known.includes(name)
}
