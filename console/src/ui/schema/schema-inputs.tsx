import { useId, useState } from 'preact/hooks'
import { text } from '../../texts/texts.ts'
import { Button } from '../button.tsx'
import { AreaField, TextField } from '../field.tsx'
import { type Schema, unitFor, unitName, unitsOf, unparsed } from './schema.ts'

type InputProps = {
  readonly schema: Schema
  readonly label: string
  readonly hint?: string | undefined
  readonly value: unknown
  readonly onValue: (value: unknown) => void
  readonly isOptional?: boolean
  readonly disabled?: boolean
  readonly suggestions?: Readonly<Record<string, readonly string[]>>
  readonly fault: string | undefined
}

/** A number with a choice of units where its schema has one. */
export function NumberField({
  schema,
  label,
  hint,
  value,
  onValue,
  isOptional,
  disabled = false,
  fault,
}: InputProps) {
  const units = unitsOf[schema['x-unit'] ?? '']
  const [factor, setFactor] = useState(() =>
    units !== undefined && typeof value === 'number' ? unitFor(value, units) : 1,
  )
  const [typed, setTyped] = useState<{ text: string; value: unknown } | null>(null)
  // What was typed stays, as long as nothing else has changed the value.
  const shown =
    typed !== null && Object.is(typed.value, value)
      ? typed.text
      : typeof value === 'number'
        ? String(value / factor)
        : ''
  const read = (input: string, unit: number) => {
    const trimmed = input.trim().replace(',', '.')
    const isEmpty = trimmed === ''
    const number = Number(trimmed) * unit
    const next = isEmpty ? undefined : Number.isInteger(number) ? number : Number(number.toFixed(6))
    const given = isEmpty && isOptional !== true ? Number.NaN : next
    setTyped({ text: input, value: given })
    onValue(given)
  }
  const field = (
    <TextField
      label={label}
      hint={hint}
      fault={fault}
      inputMode="decimal"
      autocomplete="off"
      placeholder={isOptional ? text('schema.not_set') : ''}
      disabled={disabled}
      value={shown}
      onValue={(next) => read(next, factor)}
    />
  )
  if (units === undefined) return field
  return (
    <div class="with-unit">
      {field}
      <select
        class="input"
        aria-label={text('schema.unit_of', { name: label })}
        disabled={disabled}
        value={String(factor)}
        onChange={(event) => {
          const next = Number(event.currentTarget.value)
          setFactor(next)
          if (shown !== '') read(shown, next)
        }}
      >
        {units.map(([name, one]) => (
          <option key={name} value={String(one)}>
            {unitName(name)}
          </option>
        ))}
      </select>
    </div>
  )
}

export function SchemaText({
  schema,
  label,
  hint,
  value,
  onValue,
  isOptional,
  disabled = false,
  suggestions,
  fault,
}: InputProps) {
  const id = useId()
  const known = suggestions?.[schema['x-reference'] ?? '']
  const isSecret = schema.writeOnly === true
  return (
    <>
      <TextField
        label={label}
        hint={hint}
        fault={fault}
        type={isSecret ? 'password' : 'text'}
        autocomplete="off"
        spellcheck={false}
        placeholder={isSecret ? text('schema.secret') : isOptional ? text('schema.not_set') : ''}
        disabled={disabled}
        value={typeof value === 'string' ? value : ''}
        onValue={(next) => onValue(next === '' && isOptional ? undefined : next)}
        {...(known === undefined ? {} : { list: id })}
      />
      {known !== undefined && (
        <datalist id={id}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </>
  )
}

/** For schemas that no control knows. */
export function JsonField({ label, hint, value, onValue, disabled = false, fault }: InputProps) {
  const isUnparsed = typeof value === 'string' && value.startsWith(unparsed)
  const [typed, setTyped] = useState<string | null>(null)
  const shown = isUnparsed
    ? value.slice(unparsed.length)
    : (typed ?? JSON.stringify(value ?? null, null, 2))
  return (
    <div class="stack tight">
      <AreaField
        mono
        label={label}
        hint={hint}
        fault={fault}
        rows={5}
        disabled={disabled}
        value={shown}
        onValue={(next) => {
          setTyped(next)
          try {
            onValue(JSON.parse(next))
          } catch {
            onValue(unparsed + next)
          }
        }}
      />
      {!isUnparsed && !disabled && (
        <div class="row end">
          <Button size="small" onClick={() => setTyped(JSON.stringify(value ?? null, null, 2))}>
            {text('schema.format')}
          </Button>
        </div>
      )}
    </div>
  )
}
