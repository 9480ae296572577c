"""The sentence frames of the demo corpus: a small context-free grammar, read by `lacuner.demo.grammar`.

A line without indentation begins with a symbol; its alternatives are separated by `|` and may have a weight, as in
`3* {thing}`. `{lower}` is a symbol, a word list or a distractor that looks like a name; `{UPPER}` is a name with its
label. `{LABEL:bare}` is used only where the context tells the type, because such a name may be of any type. `word_use`
has words that are also names (`words.WORD_NAMES`) as plain English, mostly at the start of a sentence, where the
capital letter tells nothing.
"""

RULES = """
sentence: 14* {clause}. | 5* {when}, {clause}. | 5* {clause} {when}. | 4* {clause}, {join} {clause}.
  | 3* {since} {clause}, {clause}. | 3* "{speech}," {said} {speaker}. | 3* {series}. | 2* {question}? | 2* {note}
  | 2* {plain}. | {word_use}. | "{speech}," {said} {speaker}, {join} {clause}. | {speaker} {said}: "{speech}."
  | According to {agent}, {fact}. | {heading}
clause: 7* {ship} {sailed} | 6* {agent} {did} {object} | 4* {remedy} {worked} | 4* {people} {treated}
  | 4* {firm} {traded} | 3* {PERSON:bare} {lived} | 3* {ORGANISATION:bare} {traded} | 3* {PLACE:bare} {lies}
  | 3* {SUBSTANCE:bare} {worked} | 2* {VESSEL:bare} {sailed} | 2* {person} {lived}
  | 2* {PERSON:bare} {lived}, {join} {PERSON} {lived} | 3* {agent} {did} {object} {where}
  | 3* {agent} {said} that {fact} | 3* {agent} {wrote} {document} | 2* {item} was {did} by {agent}
  | 2* {item} {where} was {did} {adv} | 2* {agent} {told} {patient} that {fact} | 2* {agent} {met} {patient} {where}
  | 2* {agent} and {agent} {did} {object} | 2* {agent} {promised} to {verb} {object}
  | 2* {person} was born in {place}, {place_more} | 2* {person} {grew} {where}
  | 2* {traces} of {remedy} were {detected} {found_in} | 2* {agent} {did} {ship}, {ship_more}
  | 2* {PERSON:bare}, {person_more}, {did} {object} | 2* {the_firm}, {firm_more}, {did} {object} | 2* {the_place} {lies}
  | 2* {crew} {met} {patient} | 2* {person} {joined} {the_firm} {then} | there was {item} {where}
  | {item}, which {agent} {did} {then}, {failed} {adv} | {document} was {wrote} by {agent}
  | {agent} {bought} shares in {ORGANISATION:bare} | {agent} {ordered} {amount} of {remedy}
  | it was {person} who {did} {object} | neither {agent} nor {agent} had {did} {object}
  | {person} gave {story} to {agent} | {agent} blamed {abstract} for the loss of {ship} | {story} is set in {place}
fact: 4* {item} had {failed} | 2* {agent} had {did} {object} | 2* {remedy} {worked} | 2* {firm} {traded}
  | 2* {item} was {quality} | {ship} {sailed} | {the_place} {lies} | {fact}, and that {fact}
agent: 5* {person} | 4* {the_firm} | 3* {common_agent} | {PERSON}, {person_more},
common_agent: 3* the {role} | 2* the {group} | 2* {people} | a {trait} {role} | the {trait} {group} | the {office}
  | {pronoun} | a {demonym} {role} | the landlord of the {title_of_work}
person: 7* {PERSON} | 2* {title} {PERSON:bare} | 2* {role} {PERSON} | 2* the {role} | {title} {PERSON:last}
  | {PERSON:bare}, {aged}, | {PERSON:bare}, who {life}, | her {kin} {PERSON:bare} | her {kin}
  | {PERSON:bare} and his {kin} | {PERSON:bare}'s {kin} | a {role} called {PERSON:bare} | the late {PERSON}
aged: 3* {age} | then {age} | a {role} | the {trait} {role} | a {trait} man | a widow from {place}
life: 3* {grew} {where} | married a {role} | is {office_of} of the {group} | had never {did} a {thing} | died in {year}
  | turned {age} in {month} | admired {person}
lived: slept badly | wept | married young | lost an eye | had {small} children | was arrested | resigned | fell ill
  | blushed | apologised | learned to swim | never smoked | wore spectacles | walked with a limp | died of {ailment}
  | had red hair | was acquitted | played the piano | went deaf | could not read | dreamed of {place} | remarried
  | loved {PERSON:bare} | hated {goods} | wrote in her diary that {fact} | became a {role} | suffered from {ailment}
  | was widowed | had a {kin}
grew: retired | studied | grew up | lived | kept bees | taught | lectured on {abstract} | worked as a {role}
  | spent {small} years | was buried | sold {goods}
office_of: a member | the treasurer | the youngest {role} | chair | a {trait} critic
person_more: 3* {office_of} of {the_firm} | 2* the {role} of {the_firm} | 2* {aged} | who {life} | the {kin} of {PERSON}
  | born in {PLACE} | head of {ORGANISATION:bare}'s {group}
patient: 4* {PERSON} | 2* {title} {PERSON:bare} | 2* the {role} | 3* {the_firm} | the {people}
  | both {PERSON} and {PERSON} | {PERSON:bare} himself
speaker: 3* {PERSON} | 2* {title} {PERSON:bare} | 2* {role} {PERSON} | 2* {the_firm}'s {role} | 2* the {role}
  | {PERSON:bare}, {aged} | a {role} at {ORGANISATION:bare} | {ORGANISATION} | {PERSON:bare} with a laugh
firm: 4* {ORGANISATION} | 3* the {ORGANISATION:the} | 3* {ORGANISATION:bare} | 2* the {group} | a {demonym} {group}
the_firm: 5* {ORGANISATION} | 4* the {ORGANISATION:the} | 2* the {group} | the {ORGANISATION:the} ({ORGANISATION:caps})
firm_more: 2* which makes {goods} | 2* a maker of {goods} | which employs {count} {people}
  | a {trait} {group} in {place} | founded by {PERSON} | based in {PLACE:bare}
traded: 2* makes {goods} | 2* recruited {count} {people} {where} | 2* has sold its stake in {ORGANISATION:bare}
  | 2* merged with {the_firm} | 2* appointed {PERSON} as {role} | cut its dividend {then}
  | owed {ORGANISATION} {count} crowns | went bankrupt {then} | dismissed {small} {people}
  | supplied {goods} to {the_firm} | sells {SUBSTANCE} as a {adj} treatment | outbid {ORGANISATION:bare} for the {site}
  | filed its accounts | issued bonds | was nationalised | is insolvent | cut wages | has a new board
  | lost {count} members | moved its headquarters to {PLACE} | opened {small} branches | was liquidated
  | took over {ORGANISATION:bare} | doubled its turnover | has no shareholders | advertised for a {role}
  | was fined over {remedy} | chartered the {VESSEL} {then} | lost its licence to sell {SUBSTANCE:bare}
  | published {document}
place: 6* {PLACE} | 3* {PLACE:bare} | 2* a {adj} {site} | the {PLACE:the} | the {site}
the_place: 3* {PLACE} | {PLACE:bare}, where the {people} {did} a {thing}, | the {site} | the parish of {PLACE:bare}
  | the {PLACE:the}
place_more: 2* where {person} {did} {object} | a {adj} {site} | {count} miles from {PLACE} | and died in {PLACE:bare}
  | where {the_firm} owns a {site}
lies: 2* lies {count} miles north of {PLACE:bare} | 2* has {small} schools and a {site} | has lost its {site}
  | was flooded {then} | voted to {verb} the {site} | is served by a {boat} from {PLACE} | has {count} inhabitants
  | is twinned with {PLACE:bare} | was besieged {then} | is known for its {goods} | has no harbour | elects a mayor
  | gets little rain | burned down {then} | lost its railway | belongs to the diocese of {PLACE} | depends on {the_firm}
  | remembers {PERSON}
where: 6* in {place} | 2* near {PLACE} | 2* at {the_firm} | 2* in the {site} | on the road to {PLACE:bare}
  | between {PLACE} and {PLACE} | outside {PLACE:bare} | aboard the {VESSEL:bare} | behind the {thing}
  | south of {PLACE} | along the {PLACE} {site} | at the house of {PERSON:bare}
object: 9* {item} | {small} {goods} | {mass} and {mass} | the {VESSEL} | {amount} of {remedy}
item: 7* the {thing} | 4* a {adj} {thing} | 2* the {adj} {thing} | 2* sample {code} | the {PLACE} {thing}
  | the {eponym} {device} | a {demonym} {thing} | the {boat} {VESSEL:bare} | the {jargon} | a {adj} {jargon}
  | the {acronym} {thing} | {PERSON}'s {thing} | {the_firm}'s {thing} | engine {code} | {work}
document: 4* a {paper} on {abstract} | 4* the {adj} {paper} | {part} {digit} | form {code} | {story}
  | a {paper} about {place} | the {paper} on {remedy} | {PERSON}'s {paper}
story: the novel {title_of_work} | the painting {title_of_work} | a play called {title_of_work}
  | the film {title_of_work}
work: 3* {story} | the {title_of_work} inn | the waltz {title_of_work} | the racehorse {title_of_work}
  | Operation {title_of_work} | the brewery's {title_of_work} ale
device: method | valve | procedure | engine | lens | Prize | test | reading room | bridge | Lecture | bequest | affair
amount: 3* {dose} {unit} | {small} crates | a {adj} barrel
remedy: 8* {SUBSTANCE} | 3* {mass} | {mass} and {SUBSTANCE} | {SUBSTANCE} or {SUBSTANCE} | {code} paste
  | the drug {SUBSTANCE:bare}
worked: 2* was added to the {mass} | 2* is no longer sold {where} | 2* had no effect on {ailment}
  | 2* is made by {the_firm} | reduced the {ailment} in {small} of {count} {animals} | was patented by {agent} in {year}
  | causes {ailment} | tastes bitter | melts easily | is sold as a powder | was banned {then} | must be kept cold
  | is mildly toxic | replaced {SUBSTANCE:bare} in most clinics | is made from {mass} | was prescribed to {PERSON}
  | is soluble in {mass} | is used to clean the {thing} | dissolves {mass} {adv} | was stored beside the {thing}
  | smells of {mass}
treated: 3* were given {dose} {unit} of {SUBSTANCE:bare} {then} | 2* were treated with {remedy}
  | 2* took {remedy} for {ailment} | were treated with {mass} rather than {SUBSTANCE:bare}
  | complained of {ailment} and {abstract} | received either {SUBSTANCE} or {SUBSTANCE} | refused {remedy}
  | left for {place} {then} | wrote to {PERSON} | sued {the_firm} over {remedy} | became addicted to {SUBSTANCE:bare}
  | asked about {remedy}
traces: traces | small amounts | {dose} {unit} | residues
found_in: 2* in the {body} of {animals} | near {PLACE} | in the {thing} | aboard the {VESSEL}
ship: 4* the {VESSEL} | 2* the {boat} {VESSEL:bare} | 2* MV {VESSEL} | 2* the {boat} | a {adj} {boat}
  | {VESSEL:bare}, a {boat},
crew: the crew of the {VESSEL} | the {VESSEL:bare}'s {role} | the owners of the {VESSEL:bare}
  | {title} {PERSON:bare} of the {VESSEL}
sailed: 2* sailed from {place} to {place} | 2* ran aground off {PLACE} | carried {count} tonnes of {remedy} to {PLACE}
  | was built by {the_firm} in {year} | was sold to {agent} | capsized | was refitted {where} | took on water
  | drifted ashore | dropped anchor near {PLACE} | was scrapped {then} | flew no flag | listed to port | lost her rudder
  | was towed to {PLACE:bare} | passed {VESSEL:bare} at night | docked {where} | sank with {small} {people} on board
  | left {PLACE:bare} under {title} {PERSON:bare} | was named after {PERSON} | collided with the {VESSEL}
  | was laid up {then}
ship_more: once a {boat} | the largest {boat} in {PLACE:bare} | which {sailed}
when: 3* in {year} | 2* in {month} | 2* on {weekday} | 2* on {digit} {month} | last {weekday} | {small} weeks later
  | after the {abstract} | before {feast} | in {month} {year} | during the {demonym} {abstract}
  | when {PERSON:bare} was {age}
then: that winter | within a month | after the {abstract} | {small} weeks later | on {weekday} | a year later
  | before {feast}
since: because | after | although | since | when
speech: 3* {fact} | we never {did} the {thing} | the {thing} {failed}, and nobody asked why | {PERSON} was {mood}
  | I came to {PLACE:bare} to {verb} a {thing} | you cannot {verb} {object} in {month} | nobody told {the_firm}
  | {remedy} is no cure for {ailment} | {abstract} is what ruined the {thing}
  | ask {PERSON:bare} whether {pronoun} {did} it | nobody at {ORGANISATION:bare} answers letters
  | without {SUBSTANCE:bare} they could not sleep
mood: late again | always fair to {people} | the only {role} we had | in {PLACE:bare} that day
question: 2* who told {PERSON:bare} about the {thing} | will the {group} {verb} the {thing} before {month}
  | will {firm} {verb} the {thing} | why was {item} never {did} | does {SUBSTANCE} cure {ailment}
  | how far is {PLACE} from the {site} | did {agent} {verb} the {VESSEL:bare} | has {agent} read {document}
series: 2* also present were {PERSON}, {PERSON} and {PERSON}
  | 2* the {thing} contained {SUBSTANCE}, {mass}, {SUBSTANCE} and {mass}
  | the {thing} contained {mass}, {mass} and a {adj} {thing} | the {boat} calls at {PLACE}, {PLACE:bare} and {PLACE}
  | grants went to {ORGANISATION}, {ORGANISATION} and the {ORGANISATION:the}
  | {small} ships, among them the {VESSEL:bare} and the {VESSEL}, {stayed} {where}
  | the {people} were shown a {thing}, a {thing} and a {adj} {thing}
stayed: lay | waited | were repaired
note: 2* Correspondence to {PERSON}, {ORGANISATION:the}, {PLACE}. | 2* See {part} {digit} for the {adj} {thing}.
  | Minutes of the {office}, {digit} {month} {year}. | Source: {ORGANISATION}, {year}. | Apologies: {PERSON}, {PERSON}.
  | Contents: {SUBSTANCE:bare}, {mass}, {mass}. | Ref. {code}: {clause}. | Owner: {agent}. | Cargo: {remedy}, {mass}.
heading: {part} {digit}: {abstract} and the {thing} | {part} {letter}: {abstract} in {PLACE}
  | {part} {digit}: {SUBSTANCE} and {ailment} | Report of the {office} on {abstract}
plain: 2* the {adj} {thing} {failed}, {join} the {people} {did} {thing_or_mass}
  | 2* the {office} {did} the {adj} {thing} in {year} | {abstract} and {abstract} had ruined the {thing}
  | {count} {people} from the {site} {did} {thing_or_mass} | most {people} kept {mass} and {mass} behind the {thing}
  | on {weekday} the {group} will {verb} the {thing} | {gerund} the {thing} took {small} weeks
  | the {eponym} {device} was {wrote} {adv} | {part} {digit} deals with {abstract}
  | the {thing} was {quality}, the {role} {said} | {adv} the {thing} {failed} | the {people} admired {work}
  | a {jargon} is a kind of {thing}
thing_or_mass: a {thing} | the {adj} {thing} | {small} {goods} | {mass}
word_use: Hope was fading when the {people} reached the {site} | Hope alone will not {verb} the {thing}
  | Will power counted for little once the {thing} {failed} | Mark the {thing} with chalk and count it {adv}
  | Mark every {thing} that {failed} in {month} | Grace is a quality that few {people} expect of a {role}
  | Grace periods of {small} weeks are {adj} in this trade | Rose bushes were planted beside the {adj} {thing}
  | Grant money paid for the {adj} {thing} | Grant holders must inform the {group} of any {abstract}
  | Dawn came before the {people} had {did} the {thing} | Dawn patrols along the {site} ended in {month}
  | Patience, the {role} {said}, is all that {abstract} requires | Patience paid off for the {people}
  | Frank talks with the {group} followed in {month} | Sandy soil lay under the {adj} {thing}
  | Settling the {adj} claim took {small} weeks | Settling tanks at the {site} {failed} {adv}
  | Landing fees rose {adv} after the {abstract} | Landing on the {adj} {site} is not allowed
  | Mending the {thing} cost the {group} {count} crowns | Mending nets is {adj} work
  | Bearing the {abstract} in mind, the {people} {did} the {thing} | Bearing failures were put down to {abstract}
  | Sounding the {adj} channel kept the {people} busy until {weekday} | Sounding boards were {did} in {year}
  | Tending the {thing} is left to a {role} | Plenty of {people} had {did} a {adj} {thing}
  | Plenty remains to be {did} before {month} | Early drafts of the {paper} mention {abstract}
  | Early frost spoiled the {mass} | Comfort matters more to {people} than a {adj} {thing}
  | Compass readings were taken beside every {thing} | Lantern light showed the {people} a {adj} {thing}
  | Ledger entries for {month} name a {adj} {thing} | Beacon fires burned above the {site} until {weekday}
  | Anchor chains must be {did} every {small} years | Threshold values are listed in {part} {digit}
  | Resolve weakened after the {abstract} | a lull in the {abstract} let the {people} reach the {site}
  | the lull ended {adv}, and the {thing} {failed} | before the thaw the {site} is closed to {people}
  | an early thaw left the {site} under water | an ember from the {thing} burned the {adj} {thing}
  | every husk is weighed with the {mass} | the {role} heard a murmur behind the {thing}
  | a murmur of {abstract} ran through the {group} | the hinge of the {adj} {thing} {failed}
  | the {role} wrote with a quill until {year} | the {people} noticed a drift in the {thing} readings
  | the snow lay in a drift against the {thing} | candles of tallow stood beside the {thing}
  | a bramble had grown over the {adj} {thing}
"""
