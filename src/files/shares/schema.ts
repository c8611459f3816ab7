import { Type } from '@sinclair/typebox'
import { userIdOf } from '#auth/principal.ts'
import { isUuid } from '#auth/schema.ts'
import { oneOf, optional, readFields, strict } from '#files/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedField } from '#lib/unprocessable.ts'
import type { GrantedRole, NewGrant } from './shares.ts'

/** The wire shapes of shares. */

const wordCharsMax = 256
const role = () => oneOf('viewer', 'editor', 'manager')
const word = () => Type.String({ minLength: 1, maxLength: wordCharsMax })

const grant = compileChecker(
  strict({
    principal: strict({
      type: oneOf('user', 'group', 'everyone'),
      id: optional(word()),
      subject: optional(word()),
    }),
    role: role(),
  }),
)
const change = compileChecker(strict({ role: role() }))
const access = compileChecker(strict({ user_id: Type.Optional(word()) }))
const principals = compileChecker(strict({ q: Type.Optional(word()) }))

export function readGrant(body: unknown): NewGrant {
  const { principal, role: given } = readFields(grant, body)
  const { type } = principal
  const id = principal.id ?? null
  const subject = principal.subject ?? null
  if (subject !== null && type !== 'user') {
    throw refusedField('principal.subject', 'goes with the type "user" alone')
  }
  if (type === 'everyone') {
    if (id !== null && id !== '*') throw refusedField('principal.id', 'must be "*" for everyone')
    return { principal: { type, id: '*' }, mustBeKnown: false, role: given }
  }
  if (subject !== null) {
    if (id !== null) throw refusedField('principal.id', 'does not go with "principal.subject"')
    const userId = userIdOf(plain(subject, 'principal.subject'))
    return { principal: { type, id: userId }, mustBeKnown: false, role: given }
  }
  if (id === null) throw refusedField('principal.id', 'is required')
  if (type === 'group') {
    return { principal: { type, id: plain(id, 'principal.id') }, mustBeKnown: false, role: given }
  }
  if (!isUuid(id)) throw refusedField('principal.id', 'must be the id of a user')
  return { principal: { type, id: id.toLowerCase() }, mustBeKnown: true, role: given }
}

export function readRoleChange(body: unknown): GrantedRole {
  return readFields(change, body).role
}

/** Whose access is asked for; undefined: the caller's own. */
export function readAccessAsk(query: unknown): string | undefined {
  const { user_id: id } = readFields(access, query)
  if (id === undefined || isUuid(id)) return id?.toLowerCase()
  throw refusedField('user_id', 'must be the id of a user')
}

export function readPrincipalsAsk(query: unknown): string {
  const { q } = readFields(principals, query)
  if (q === undefined) throw refusedField('q', 'is required')
  return plain(q, 'q')
}

function plain(text: string, param: string): string {
  if (!/\p{Cc}/u.test(text) && text.isWellFormed()) return text
  throw refusedField(param, 'must be plain text on one line')
}
