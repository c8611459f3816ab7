export const permissionNames = [
  'can_access_api',
  'can_manage_models',
  'can_edit_config',
  'can_manage_groups',
] as const

export type Permission = (typeof permissionNames)[number]

/** Required by every endpoint, in addition to its own permission. */
export const basePermission = 'can_access_api' satisfies Permission

/** At least one user must always have it. */
export const groupsPermission = 'can_manage_groups' satisfies Permission

export const shippedAdmins = 'admins'

/** The built-in groups. */
export const shippedGroups: Readonly<Record<string, readonly Permission[]>> = {
  [shippedAdmins]: permissionNames,
  users: [basePermission],
}

export function isPermission(name: string): name is Permission {
  const known: readonly string[] = permissionNames
  return known.includes(name)
}

/** Without duplicates, in the order of their documentation. */
export function sortPermissions(permissions: Iterable<Permission>): Permission[] {
  const held = new Set(permissions)
  return permissionNames.filter((name) => held.has(name))
}
