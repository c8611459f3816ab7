import type { Person } from '#test/support/file-gateway.ts'
import { principalOf } from '#test/support/file-gateway.ts'

/** A model of files and folders that is too simple to be wrong: every query scans a list of nodes. */
export type OracleNode = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly name: string
  parent: OracleNode | null
  owner: string
  /** The deleted node: itself or a folder above it. */
  trash: OracleNode | null
}

export type OracleShare = {
  readonly id: string
  readonly node: OracleNode
  readonly principal: { readonly type: string; readonly id: string }
  role: number
}

export type Scope = 'mine' | 'shared_with_me' | 'all'

export const roleNames = ['viewer', 'editor', 'manager', 'owner']
const [editor, manager, owner] = [2, 3, 4]

export class Oracle {
  nodes: OracleNode[] = []
  shares: OracleShare[] = []

  live(): OracleNode[] {
    return this.nodes.filter(({ trash }) => trash === null)
  }

  childrenOf(folder: OracleNode): OracleNode[] {
    return this.live().filter(({ parent }) => parent === folder)
  }

  /** The highest role of shares on the node or above it; 0: none. */
  granted(person: Person, node: OracleNode): number {
    const above = [node, ...ancestors(node)]
    const roles = this.shares
      .filter((share) => above.includes(share.node) && isFor(share, person))
      .map(({ role }) => role)
    return Math.max(0, ...roles)
  }

  role(person: Person, node: OracleNode): number {
    if (node.trash !== null) return 0
    return node.owner === principalOf(person).userId ? owner : this.granted(person, node)
  }

  readable(person: Person, scope: Scope): OracleNode[] {
    const isMine = (node: OracleNode) => node.owner === principalOf(person).userId
    return this.live()
      .filter((node) => this.role(person, node) > 0)
      .filter((node) => scope === 'all' || isMine(node) === (scope === 'mine'))
  }

  /** The top level as a person sees it. */
  top(person: Person, scope: Scope): OracleNode[] {
    return this.readable(person, scope).filter((node) => this.readableParent(person, node) === null)
  }

  readableParent(person: Person, { parent }: OracleNode): OracleNode | null {
    return parent !== null && this.role(person, parent) > 0 ? parent : null
  }

  /** The error of creating a node in a folder; null: none. */
  refuseIn(person: Person, folder: OracleNode | null): string | null {
    if (folder === null) return null
    const role = this.role(person, folder)
    if (role === 0 || folder.kind !== 'folder') return '404 not_found'
    return role < editor ? '403 permission_denied' : null
  }

  refuseName(
    location: { parent: OracleNode | null; owner: string },
    name: string,
    except?: OracleNode,
  ) {
    const taken = this.live().find(
      (node) =>
        node !== except &&
        node.name === name &&
        node.parent === location.parent &&
        node.owner === location.owner,
    )
    return taken === undefined ? null : '409 name_conflict'
  }

  locationOf(person: Person, parent: OracleNode | null) {
    return { parent, owner: parent?.owner ?? principalOf(person).userId }
  }

  move(person: Person, node: OracleNode, to: OracleNode | null): string {
    const role = this.role(person, node)
    if (role === 0) return '404 not_found'
    if (role < editor) return '403 permission_denied'
    if (to === this.readableParent(person, node)) return '200'
    if (to === null && role < owner) return '403 move_out_of_share'
    const refused = this.refuseIn(person, to)
    if (refused !== null) return refused
    const location = this.locationOf(person, to)
    if (location.owner !== node.owner && role < owner) return '403 move_out_of_share'
    if (to !== null && [to, ...ancestors(to)].includes(node)) return '409 folder_cycle'
    const taken = this.refuseName(location, node.name, node)
    if (taken !== null) return taken
    if (location.owner !== node.owner) this.transferOwnership(node, location.owner)
    node.parent = to
    return '200'
  }

  private transferOwnership(node: OracleNode, to: string) {
    for (const moved of this.live().filter((each) => [each, ...ancestors(each)].includes(node))) {
      moved.owner = to
      for (const left of this.nodes) {
        if (left.parent === moved && left.trash !== null) left.parent = null
      }
    }
  }

  remove(person: Person, node: OracleNode): string {
    const role = this.role(person, node)
    if (role === 0) return '404 not_found'
    if (role < editor) return '403 permission_denied'
    for (const below of this.live().filter((each) => ancestors(each).includes(node))) {
      below.trash = node
    }
    node.trash = node
    return '200'
  }

  restore(person: Person, node: OracleNode): string {
    const mine = node.owner === principalOf(person).userId
    if (node.trash === null) {
      const role = this.role(person, node)
      return role === 0 ? '404 not_found' : role < editor ? '403 permission_denied' : '200'
    }
    const isParentLive = node.parent === null || node.parent.trash === null
    const role = isParentLive ? this.granted(person, node) : 0
    if (!mine && role < editor) return '404 not_found'
    const parent = isParentLive ? node.parent : null
    const taken = this.refuseName({ parent, owner: node.owner }, node.name, node)
    if (taken !== null) return taken
    const { trash } = node
    const isTaken = (each: OracleNode): boolean =>
      each === node || (each.trash === trash && each.parent !== null && isTaken(each.parent))
    for (const back of this.nodes.filter((each) => each.trash === trash && isTaken(each))) {
      back.trash = null
    }
    node.parent = parent
    return '200'
  }

  deletePermanently(person: Person, node: OracleNode): string {
    const mine = node.owner === principalOf(person).userId
    if (!(mine && node.trash !== null)) {
      const role = this.role(person, node)
      if (role === 0) return '404 not_found'
      if (role < owner) return '403 permission_denied'
    }
    this.nodes = this.nodes.filter((each) => each !== node)
    this.shares = this.shares.filter((share) => share.node !== node)
    return '200'
  }

  refuseShare(person: Person, node: OracleNode, principal: OracleShare['principal']) {
    const role = this.role(person, node)
    if (role === 0) return '404 not_found'
    if (role < manager) return '403 permission_denied'
    return principal.id === node.owner ? '422 principal_is_owner' : null
  }

  /** Revokes a share at a node, which may be below the shared one. */
  revoke(person: Person, node: OracleNode, share: OracleShare): string {
    const role = this.role(person, node)
    const isThere = this.shares.includes(share) && [node, ...ancestors(node)].includes(share.node)
    if (role === 0 || !isThere || (role < manager && !isFor(share, person))) return '404 not_found'
    const isTheirs = share.principal.id === principalOf(person).userId
    if (role < manager && !isTheirs) return '403 permission_denied'
    if (share.node !== node) return '409 inherited'
    this.shares = this.shares.filter((each) => each !== share)
    return '200'
  }
}

/** From the parent folder to the top level. */
export function ancestors({ parent }: OracleNode): OracleNode[] {
  return parent === null ? [] : [parent, ...ancestors(parent)]
}

export function isFor({ principal }: OracleShare, person: Person): boolean {
  switch (principal.type) {
    case 'user':
      return principal.id === principalOf(person).userId
    case 'group':
      return person.groups.includes(principal.id)
    default:
      return true
  }
}
