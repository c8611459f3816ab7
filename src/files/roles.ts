import type { Role } from './files.ts'

const roles = ['viewer', 'editor', 'manager', 'owner'] as const satisfies Role[]

/** 1 is `viewer`, 4 is `owner`, as the database has them. */
export function roleOfRank(rank: number): Role {
  const role = roles[rank - 1]
  if (role === undefined) throw new Error(`${rank} is no role`)
  return role
}

export function rankOfRole(role: Role): number {
  return roles.indexOf(role) + 1
}

export function isAtLeast(held: Role, wanted: Role): boolean {
  return rankOfRole(held) >= rankOfRole(wanted)
}
