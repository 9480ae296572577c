"""English words so common that a dictionary entry spelt like one is more often the word than the name.

Our own list, written for this purpose: function words, the everyday verbs, nouns and adjectives, and words that turn
up as names of genes, companies, places and people (`will`, `may`, `apple`, `reading`, `lead`). Lower case.
"""

from __future__ import annotations

_WORDS = """
a about above across act action active actually add added after again against age ago agree air alive all allow
almost alone along already also although always am amid among amount an and animal another answer any anyone anything
apart appear apple are area arm around arrive art article as ask asleep at attack attempt away
baby back bad bag ball bank bar base basic battle be bear beat beautiful became because become bed been before began
begin behind being believe below best better between beyond big bill bird bit black block blood blow blue board boat
body book born both bottom bought box boy branch bread break bridge bring broad brother brought brown brush budget
build building built burn bus business busy but buy by
call called came camp can cannot capital car card care carry case cat catch cause cell center central centre certain
chain chair chance change character charge charm chart check chest child children choice choose church circle city
claim class clean clear clock close cloud club coach coal coast coat cold collect college colour color come comes
coming common company compare complete condition consider contain continue control cook cool copy corner cost could
council count country couple course court cover cow cream create cross crowd cry culture cup current cut cycle
daily damage dance danger dark data date daughter dawn day days dead deal dear death debate decide deep degree
delay deliver demand department describe desert design desk detail develop did die difference different difficult
dinner direct direction discuss disease distance do doctor does dog doing dollar done door double doubt down draw
dream dress drink drive drop drug dry due during dust duty
each ear early earn earth ease east easy eat edge education effect effort egg eight either election else empty end
enemy energy engine enjoy enough enter entire equal even evening event ever every everyone everything evidence exact
example except exchange exercise expect experience explain express eye
face fact factor fail fair faith fall false family famous far farm fast fat father fear feature feed feel feet fell
felt female few field fight figure file fill film final find fine finger finish fire firm first fish fit five fix
flag flat flight floor flow flower fly follow food foot for force foreign forest forget form former forward found
four frame free fresh friend from front fruit fuel full fun function fund future
gain game garden gas gate gave general get girl give given glad glass go goal goes going gold gone good got
government grace grand grant grass gray great green grew grey ground group grow growth guard guess guide gun
had hair half hall hand hang happen happy hard harm has hat hate have having he head health hear heard heart heat
heavy height held hell help her here herself hero hi hide high hill him himself his history hit hold hole home hope
horse hospital hot hotel hour house how however huge human hundred hunt hurt husband
i ice idea if ill image imagine impact important in inch include income increase indeed industry inside instead
interest into iron is island issue it item its itself
jack jet job join joke joy judge jump june just justice
keep kept key kick kid kill kind king kitchen knee knew knife know known
lab lack lady lake land language large last late later laugh launch law lay lead leader learn least leave led left
leg legal less let letter level lie life lift light like likely limit line link list listen little live load loan
local lock long look lord lose loss lost lot loud love low lower luck lunch
machine made magic mail main major make male man manage many map march mark market marriage mass master match
material matter may maybe me meal mean means measure meat media medical meet member memory men mental mention message
met metal method middle might mile milk mind mine minute miss mission mixed model modern moment money monitor month
moon moral more morning most mother motion mount mountain mouse mouth move movement movie mr mrs much murder music
must my myself
name narrow nation national native natural nature near nearly neck need network never new news next nice night nine
no nobody none nor normal north nose not note nothing notice now nowhere number
object ocean of off offer office officer often oil ok old on once one only onto open operation opinion or orange
order ordinary other others our out outside over own
page pain paint pair paper parent park part party pass past path patient pattern pay peace people per percent perfect
perhaps period person phone photo physical pick picture piece pink place plain plan plane plant plate play player
please point poll pool poor pop popular position possible post pot pound power practice present president press
pretty prevent price private problem process produce product program progress project proper protect proud prove
provide public pull purpose push put
quality quarter queen question quick quickly quiet quite
race radio rain raise ran range rate rather ray reach read reading ready real really reason receive recent record
red reduce region relate release remain remember remove report require research rest result return rich ride right
ring rise risk river road rock role roll roof room root rose rough round route row royal rule run running rush
sad safe safety said sale salt same sand save saw say scale scene school science score sea search season seat second
secret section security see seed seek seem seen self sell send sense sent separate series serious serve service set
seven several sex shake shall shape share sharp she ship shirt shock shoe shoot shop short shot should shoulder show
shut sick side sight sign signal silver similar simple since sing single sir sister sit site six size skill skin
sky sleep slow small smart smell smile snow so social society soft soil sold soldier some someone something son song
soon sort soul sound source south space speak special speech speed spell spend spirit split sport spot spread spring
square staff stage stand standard star start state station stay step still stock stone stop store storm story
straight strange stream street strength stress strike strong structure student study stuff style subject success such
sudden sugar suit summer sun sure surface surprise sweet swim system
table take taken talk tall target task tax tea teach team tear tell ten term test text than thank that the their them
then theory there these they thick thin thing think third this those though thought three through throw thus ticket
tie time times tip tired title to today together told tomorrow ton tone too took tool top total touch tough toward
town trace track trade train travel treat tree trial trip trouble true trust truth try turn twelve twenty twice two
type
under union unit until up upon us use used user usual
valley value various very victory video view village visit voice volume vote
wait walk wall want war warm was wash watch water wave way we weak wealth wear weather week weight well went were
west what wheel when where whether which while white who whole whom whose why wide wife wild will win wind window
wing winter wish with within without woman women won wonder wood word work worker world worry worse worth would wound
write wrong
yard year yellow yes yesterday yet you young your yourself youth
zero zone
"""

COMMON_WORDS = frozenset(_WORDS.split())
