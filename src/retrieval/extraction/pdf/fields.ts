import { type Pdf, readString } from './pdfium.ts'

/** Subtypes of annotations. */
const link = 2
const popup = 16
const widget = 20
/** Annotations of one page; more are ignored. */
const annotationsMax = 10_000

/** The names and values of filled form fields, and the texts of notes. */
export function readFields(pdf: Pdf, page: number): string[] {
  const { pdfium } = pdf
  const count = Math.min(pdfium.FPDFPage_GetAnnotCount(page), annotationsMax)
  const lines = new Set<string>()
  for (let index = 0; index < count; index++) {
    const annotation = pdfium.FPDFPage_GetAnnot(page, index)
    if (annotation === 0) continue
    const subtype = pdfium.FPDFAnnot_GetSubtype(annotation)
    if (subtype === widget) lines.add(fieldLine(pdf, annotation))
    else if (subtype !== link && subtype !== popup)
      lines.add(entryOf(pdf, annotation, 'Contents').trim())
    pdfium.FPDFPage_CloseAnnot(annotation)
  }
  lines.delete('')
  return [...lines]
}

function fieldLine(pdf: Pdf, annotation: number): string {
  const { pdfium, form } = pdf
  const read = (field: (typeof fieldStrings)[number]) =>
    readString(pdf, (buffer, bytes) => pdfium[field](form, annotation, buffer, bytes)).trim()
  const value =
    read('FPDFAnnot_GetFormFieldValue') ||
    selectedOptions(pdf, annotation).join(', ') ||
    entryOf(pdf, annotation, 'V').trim()
  if (value === '' || value === 'Off') return ''
  const name =
    read('FPDFAnnot_GetFormFieldAlternateName') ||
    read('FPDFAnnot_GetFormFieldName') ||
    entryOf(pdf, annotation, 'T').trim()
  return name === '' ? value : `${name}: ${value}`
}

const fieldStrings = [
  'FPDFAnnot_GetFormFieldValue',
  'FPDFAnnot_GetFormFieldAlternateName',
  'FPDFAnnot_GetFormFieldName',
] as const

/** Of a list with several selections, whose value is not a text. */
function selectedOptions(pdf: Pdf, annotation: number): string[] {
  const { pdfium, form } = pdf
  const count = Math.min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), annotationsMax)
  return Array.from({ length: Math.max(count, 0) }, (_, index) =>
    pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index)
      ? readString(pdf, (buffer, bytes) =>
          pdfium.FPDFAnnot_GetOptionLabel(form, annotation, index, buffer, bytes),
        )
      : '',
  ).filter((label) => label !== '')
}

function entryOf(pdf: Pdf, annotation: number, key: string): string {
  return readString(pdf, (buffer, bytes) =>
    pdf.pdfium.FPDFAnnot_GetStringValue(annotation, key, buffer, bytes),
  )
}
