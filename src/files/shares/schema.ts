import { Type } from '@sinclair/typebox'
import { userIdOf } from '#auth/principal.ts'
import { oneOf, optional, readFields, strict } from '#files/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { GrantedRole, NewGrant } from './shares.ts'

/** The wire shapes of shares. */

const wordCharsMax = 256
const role = () => oneOf('viewer', 'editor', 'manager')
const word = (description?: string) =>
  Type.String({
    ...(description === undefined ? {} : { description }),
    minLength: 1,
    maxLength: wordCharsMax,
  })

export const grantBody = strict({
  principal: strict({
    type: oneOf('user', 'group', 'everyone'),
    id: optional(word(), { description: 'The id of a user, the name of a group, or `*`.' }),
    subject: optional(word(), {
      description: 'A user in the words of the identity provider, in place of the id.',
    }),
  }),
  role: role(),
})
export const roleChange = strict({ role: role() })
export const accessQuery = strict({
  user_id: Type.Optional(word('Whose; absent: of the caller. Others take the role manager.')),
})
const principals = strict({ q: Type.Optional(word()) })
/** It is required, which is told in other words than those of a checker. */
export const principalsQuery = Type.Object({
  q: word('A part of the name, or of the subject of a user.'),
})

const grantChecker = compileChecker(grantBody)
const changeChecker = compileChecker(roleChange)
const accessChecker = compileChecker(accessQuery)
const principalsChecker = compileChecker(principals)

export function readGrant(body: unknown): NewGrant {
  const { principal, role: given } = readFields(grantChecker, body)
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
  return readFields(changeChecker, body).role
}

/** Whose access is asked for; undefined: the caller's own. */
export function readAccessAsk(query: unknown): string | undefined {
  const { user_id: id } = readFields(accessChecker, query)
  if (id === undefined || isUuid(id)) return id?.toLowerCase()
  throw refusedField('user_id', 'must be the id of a user')
}

export function readPrincipalsAsk(query: unknown): string {
  const { q } = readFields(principalsChecker, query)
  if (q === undefined) throw refusedField('q', 'is required')
  return plain(q, 'q')
}

function plain(text: string, param: string): string {
  if (!/\p{Cc}/u.test(text) && text.isWellFormed()) return text
  throw refusedField(param, 'must be plain text on one line')
}
