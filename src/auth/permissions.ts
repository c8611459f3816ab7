import { permissionNames } from '#config/schema.ts'

export type Permission = (typeof permissionNames)[number]

/** What every endpoint demands, whatever else it demands. */
export const basePermission = 'can_access_api' satisfies Permission

/** Who has it says who may do what: there is always somebody. */
export const groupsPermission = 'can_manage_groups' satisfies Permission

export const shippedAdmins = 'admins'

/** The groups that exist from the first start. */
export const shippedGroups: Readonly<Record<string, readonly Permission[]>> = {
  [shippedAdmins]: permissionNames,
  users: [basePermission],
}

export function isPermission(name: string): name is Permission {
  const known: readonly string[] = permissionNames
  return known.includes(name)
}

/** Each once, in the order in which they are documented. */
export function inOrder(permissions: Iterable<Permission>): Permission[] {
  const held = new Set(permissions)
  return permissionNames.filter((name) => held.has(name))
}
