import { describe, expect, test } from 'bun:test'
import { logicalOrder } from '#retrieval/extraction/pdf/bidi.ts'
import { extract } from './extraction-harness.ts'

/** PDFs of LibreOffice and ReportLab, written by bench/documents/make.py. */

const hebrew = 'העובדים זכאים ל-15 ימי חופשה בשנה (כולל חגים).'
const pointed = 'שָׁלוֹם לְכֻלָּם, מחיר: 1,234.50 ₪ [ראו סעיף 4(ב)] "מצוטט".'
const product = 'מוצר Sluice 2.0 תומך ב-PDF (גרסה 1.7).'
const arabic = 'يحق للموظفين الحصول على إجازة سنوية مدتها 20 يوما (مدفوعة الأجر).'
const question = 'السؤال لأحمد: هل وصلت الرسالة؟ نعم، في 12/05/2026.'
const vowels = 'العَرَبِيَّةُ لُغَةٌ جميلة.'
const persian = 'کارمندان حق دارند از مرخصی سالانه استفاده کنند (۲۰ روز).'
const mixed = 'Mixed: the word שלום means peace, and مرحبا means hello (see السلام).'

describe('right-to-left text in', () => {
  test.each([
    ['hebrew-office', [hebrew, pointed, product]],
    ['arabic-office', [arabic, question, vowels, persian]],
    ['mixed-office', [mixed]],
    ['hebrew-arabic-drawn', [hebrew, product, arabic, question]],
  ])('%s.pdf is read in logical order', async (name, lines) => {
    const expected = lines.map((line) => line.normalize('NFC')).join('\n')
    expect(await textOf(name)).toBe(expected)
  })

  test('a line of very many glyphs keeps all of them', () => {
    const glyphs = Array.from({ length: 100_000 }, (_, at) => ({
      text: ['(', 'א', '\u05b8', 'a', '1'][at % 5] ?? '',
      left: at,
      right: at + 1,
      middle: at + 0.5,
      height: 10,
    }))
    expect(logicalOrder(glyphs)).toHaveLength(100_000)
  })
})

describe('Chinese, Japanese and Korean', () => {
  const chinese = '员工每年享有十五天带薪年假，未使用的年假可以结转到次年三月。'
  const japanese = '有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。'
  const korean = '직원은 매년 십오일의 유급 휴가를 받을 수 있습니다.'
  const traditional = '員工每年享有十五天帶薪年假。'

  test.each([
    ['cjk-unicode-fonts', [chinese, japanese, korean, traditional]],
    ['cjk-legacy-fonts', [japanese, chinese, korean, traditional]],
  ])('of fonts that %s.pdf does not contain is read', async (name, pages) => {
    expect(await textOf(name)).toBe(pages.join('\n\n'))
  })
})

test('a form has its labels, texts, choices and checked boxes', async () => {
  expect(await textOf('form')).toBe(
    'Leave request\n\nSurname: Nováková\nPaid leave: Yes\nOffice: Brno',
  )
})

async function textOf(name: string): Promise<string> {
  const bytes = await Bun.file(`test/fixtures/documents/${name}.pdf`).bytes()
  return (await extract(bytes, { name: `${name}.pdf` })).text
}
