import { expect, test } from 'bun:test'
import { isServiceSubject, serviceSubjectOf, userIdOf } from '#auth/principal.ts'

test('a subject has one user id in all versions of the gateway', () => {
  // Changing the computation would separate users from their data.
  expect(userIdOf('ann')).toBe('b24262fa-cfc8-81c4-b43e-04125d72b4ff')
  expect(userIdOf('Ann')).not.toBe(userIdOf('ann'))
})

test('user ids are UUIDs of version 8, whatever the subject', () => {
  const subjects = Array.from({ length: 200 }, (_, at) => `subject ${at}`)
  const ids = ['', '\0', 'ä', 'x'.repeat(10_000), ...subjects].map(userIdOf)
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
  expect(new Set(ids).size).toBe(ids.length)
})

test('the subject of a service account contains its id', () => {
  const id = userIdOf('ann')
  const subject = serviceSubjectOf(id)
  expect([isServiceSubject(subject), userIdOf(subject)]).toEqual([true, id])
  expect(isServiceSubject('ann')).toBe(false)
  // Neither a text around it nor another form is one.
  for (const other of [` ${subject}`, `${subject} `, subject.toUpperCase(), 'sluice-service:x']) {
    expect(userIdOf(other)).not.toBe(id)
  }
})
