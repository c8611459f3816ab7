import { describe, expect, test } from 'bun:test'
import { strToU8, unzipSync, zipSync } from 'fflate'
import { makeDocx, makePdf, makePptx, makeXlsx } from '#test/support/documents.ts'
import { extract } from './extraction-harness.ts'

/** Text that simple readers lose: legacy encodings, form fields, headers and comments. */

describe('a text without a declared encoding', () => {
  /** As Python's codecs encode them. */
  test.each([
    [
      'windows-1250',
      'Příliš žluťoučký kůň úpěl ďábelské ódy. Zaměstnanci mají nárok na dovolenou.',
      'UPjtbGmaIJ5sdZ1vdehr/SBr+fIg+nDsbCDv4WJlbHNr6SDzZHkuIFphbexzdG5hbmNpIG1hau0gbuFyb2sgbmEgZG92b2xlbm91Lg==',
    ],
    [
      'ISO-8859-2',
      'Příliš žluťoučký kůň úpěl ďábelské ódy. Zaměstnanci mají nárok na dovolenou.',
      'UPjtbGm5IL5sdbtvdehr/SBr+fIg+nDsbCDv4WJlbHNr6SDzZHkuIFphbexzdG5hbmNpIG1hau0gbuFyb2sgbmEgZG92b2xlbm91Lg==',
    ],
    [
      'ISO-8859-1',
      'Les employés ont droit à vingt-cinq jours de congé payé. Où êtes-vous allé à Noël ?',
      'TGVzIGVtcGxveelzIG9udCBkcm9pdCDgIHZpbmd0LWNpbnEgam91cnMgZGUgY29uZ+kgcGF56S4gT/kg6nRlcy12b3VzIGFsbOkg4CBOb+tsID8=',
    ],
    [
      'windows-1252',
      'Größere Änderungen müssen „schriftlich“ erfolgen – auch der Urlaub für Mitarbeiter.',
      'R3L232VyZSDEbmRlcnVuZ2VuIG38c3NlbiCEc2NocmlmdGxpY2iTIGVyZm9sZ2VuIJYgYXVjaCBkZXIgVXJsYXViIGb8ciBNaXRhcmJlaXRlci4=',
    ],
    [
      'Shift_JIS',
      '有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。',
      'l0yLi4t4icmCzZROitST8Y9ck/qCxYFBl4KUTo5PjI6WloLcgsWMSoLoiXqCt4KxgsaCqoLFgquC3IK3gUI=',
    ],
    [
      'GBK',
      '本公司员工每年享有十五天带薪年假，未使用的年假可以结转到次年三月。',
      'sb65q8u+1LG5pMO/xOrP7dPQyq7O5czstPjQvcTqvNmjrM60yrnTw7XExOq82b/J0tS94deqtb20zsTqyP3UwqGj',
    ],
    [
      'Big5',
      '本公司員工每年享有十五天帶薪年假，未使用的年假可以結轉到次年三月。',
      'pbukvaVxrfukdahDpn6oyaazpFGkraTRsWHBfqZ+sLKhQaW8qM+lzqq6pn6wsqVppUi1ssLgqOymuKZ+pFSk66FD',
    ],
    [
      'EUC-JP',
      '有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。',
      'za2167XZssukz8evtNbG8729xvykx6GizeLHr7uwt+7L9qTepMe3q6TqsdukuaSzpMikrKTHpK2k3qS5oaM=',
    ],
    [
      'EUC-KR',
      '직원은 매년 십오일의 유급 휴가를 받을 수 있습니다.',
      'wfe/+MC6ILjFs+Igvcq/wMDPwMcgwK+x3iDI3rChuKYgud7AuyC89iDA1r3AtM+02S4=',
    ],
    [
      'windows-1251',
      'Сотрудники имеют право на отпуск продолжительностью двадцать восемь дней.',
      '0e7y8PPk7ejq6CDo7OX+8iDv8ODi7iDt4CDu8u/z8eog7/Du5O7r5ujy5ev87e7x8vz+IOTi4OT24PL8IOLu8eXs/CDk7eXpLg==',
    ],
    [
      'KOI8-R',
      'Сотрудники имеют право на отпуск продолжительностью двадцать восемь дней.',
      '88/U0tXEzsnLySDJzcXA1CDQ0sHXzyDOwSDP1NDV08sg0NLPxM/M1snUxczYzs/T1NjAIMTXwcTDwdTYINfP08XN2CDEzsXKLg==',
    ],
    [
      'windows-1253',
      'Οι εργαζόμενοι δικαιούνται άδεια είκοσι ημερών το χρόνο.',
      'z+kg5fHj4eb87OXt7+kg5Onq4env/e304ekg3OTl6eEg5d/q7/PpIOfs5fH+7SD07yD38fzt7y4=',
    ],
    [
      'windows-1256',
      'يحق للموظفين الحصول على إجازة سنوية مدتها عشرون يوما.',
      '7c3eIOHh4+bZ3e3kIMfhzdXm4SDa4ewgxczH0skg0+Tm7ckg48/K5ccg2tTR5uQg7ebjxy4=',
    ],
  ])('in %s is read', async (_, text, base64) => {
    expect((await extract(Buffer.from(base64, 'base64'), { name: 'a.txt' })).text).toBe(text)
  })
})

test('UTF-8 with a single damaged byte stays UTF-8', async () => {
  const bytes = Buffer.concat([
    Buffer.from('Příliš žluťoučký kůň '),
    Buffer.from([0xff]),
    Buffer.from(' úpěl'),
  ])
  expect((await extract(bytes, { name: 'a.txt' })).text).toBe('Příliš žluťoučký kůň \ufffd úpěl')
})

test('a text that mentions %PDF- is a text, a PDF after other bytes is a PDF', async () => {
  const text = 'Every file begins with %PDF-1.4 and ends with %%EOF.'
  expect((await extract(text, { name: 'a.txt' })).text).toBe(text)
  const late = Buffer.concat([Buffer.from('\r\nsome mailer\r\n'), makePdf([['late']])])
  expect((await extract(late, { name: 'a.pdf' })).text).toBe('late')
})

test('values of form fields and notes of a PDF are read', async () => {
  const annotations =
    '/Annots [<< /Type /Annot /Subtype /Widget /FT /Tx /T (Surname) /V (Novak) /Rect [0 0 9 9] >> ' +
    '<< /Type /Annot /Subtype /Text /Contents (Remember this) /Rect [0 0 9 9] >>]'
  const pdf = Buffer.from(makePdf([['Form']]))
    .toString('latin1')
    .replace('/MediaBox', `${annotations} /MediaBox`)
  const { text } = await extract(Buffer.from(pdf, 'latin1'), { name: 'a.pdf' })
  expect(text.split(/\n+/).toSorted()).toEqual(['Form', 'Remember this', 'Surname: Novak'])
})

test('headers, footers and comments of a docx are read', async () => {
  const parts = unzipSync(makeDocx(['Body']))
  const base = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const namespace = 'http://schemas.openxmlformats.org/package/2006/relationships'
  const word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
  const paragraph = (text: string) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`
  const added = {
    'word/header1.xml': `<w:hdr ${word}>${paragraph('Contract 42')}</w:hdr>`,
    'word/footer1.xml': `<w:ftr ${word}>${paragraph('Confidential')}</w:ftr>`,
    'word/comments.xml': `<w:comments ${word}><w:comment w:id="1">${paragraph('Check the sum')}</w:comment></w:comments>`,
    'word/_rels/document.xml.rels': `<Relationships xmlns="${namespace}">${[
      'header',
      'footer',
      'comments',
    ]
      .map((kind, at) => {
        const target = kind === 'comments' ? 'comments.xml' : `${kind}1.xml`
        return `<Relationship Id="r${at}" Type="${base}/${kind}" Target="${target}"/>`
      })
      .join('')}</Relationships>`,
  }
  const docx = zipSync({
    ...parts,
    ...Object.fromEntries(Object.entries(added).map(([path, xml]) => [path, strToU8(xml)])),
  })
  const { text } = await extract(docx, { name: 'a.docx' })
  expect(text).toBe('Contract 42\n\nBody\n\nConfidential\n\nCheck the sum')
})

test('a long sheet repeats the names of its columns', async () => {
  const rows = Array.from({ length: 300 }, (_, at) => [`person ${at}`, at])
  const xlsx = makeXlsx({ Staff: [['Name', 'Number'], ...rows] })
  const { text } = await extract(xlsx, { name: 'a.xlsx' })
  const gaps = text.split('| Name | Number |').map(({ length }) => length)
  expect(gaps.length).toBeGreaterThan(3)
  expect(Math.max(...gaps)).toBeLessThan(1_700)
})

test('the chart of a slide is read', async () => {
  const base = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const points = (...values: readonly string[]) =>
    values.map((value, at) => `<c:pt idx="${at}"><c:v>${value}</c:v></c:pt>`).join('')
  const chart =
    '<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Revenue</a:t></a:r></a:p></c:rich></c:tx></c:title>' +
    `<c:ser><c:tx><c:strRef>${points('North')}</c:strRef></c:tx><c:cat>${points('Q1', 'Q2')}</c:cat>` +
    `<c:val><c:numRef><c:f>A1</c:f>${points('10', '20')}</c:numRef></c:val></c:ser></c:chart></c:chartSpace>`
  const relations = `<Relationships><Relationship Id="r1" Type="${base}/chart" Target="../charts/chart1.xml"/></Relationships>`
  const pptx = zipSync({
    ...unzipSync(makePptx([{ lines: ['Results'] }])),
    'ppt/charts/chart1.xml': strToU8(chart),
    'ppt/slides/_rels/slide1.xml.rels': strToU8(relations),
  })
  const { text } = await extract(pptx, { name: 'a.pptx' })
  expect(text).toBe('## Results\n\n| Revenue |\n| North |\n| Q1 | Q2 |\n| 10 | 20 |')
})
