import { expect } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { noHistory } from '#surfaces/responses/history.ts'
import { type ParsedCreate, parseCreateResponse } from '#surfaces/responses/parse.ts'
import { createResponse } from '#surfaces/responses/schema/request.ts'
import { checkDescribed } from '#test/support/described-shapes.ts'
import { testSeals } from '#test/support/sealing.ts'

/** Small, so that tests can exceed them. */
const limits = { inputCharsMax: 2000, inputItemsMax: 20, toolsMax: 10 }

export const context = { limits, history: noHistory, seals: testSeals }

/** Parses the body `{model, input}` with further fields, which must conform to its schema. */
export function parse(fields: object) {
  const parsed = parseOdd(fields)
  checkDescribed(createResponse, bodyOf(fields))
  return parsed
}

/** Parses fields that are accepted but undocumented. */
export function parseOdd(fields: object) {
  return parseCreateResponse(bodyOf(fields), context)
}

function bodyOf(fields: object) {
  return { model: 'demo', input: 'Hello', ...fields }
}

export function refusalOfBody(body: unknown): AppError {
  try {
    parseCreateResponse(body, context)
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

export function refusalOf(fields: object): AppError {
  return refusalOfBody({ model: 'demo', input: 'Hello', ...fields })
}

/** The parsed request without its stored input, whose ids differ each time. */
export function understood({ storedInput: _, ...parsed }: ParsedCreate) {
  return parsed
}

/** Expects a 400 `invalid_request` about `param` with this message. */
export function expectInvalid(error: AppError, param: string | null, message: string): void {
  const { status, type, wireCode } = error
  expect({ status, type, code: wireCode, param: error.param, message: error.message }).toEqual({
    status: 400,
    type: 'invalid_request_error',
    code: 'invalid_request',
    param,
    message,
  })
}
