"""What each document of the case file says, line by line, whatever file it becomes."""

# ruff: noqa: RUF001

from datetime import timedelta

from baton.casefile.matter import (
    CLIENT,
    COUNSEL,
    MASTER,
    OPPONENT,
    WITNESS,
    Matter,
    caption,
    written,
)


def complaint(matter: Matter, *, pages: int) -> list[list[str]]:
    """The pleading that opens the suit: a first page, then numbered allegations."""
    first = [
        *caption(matter),
        "STATEMENT OF CLAIM",
        "",
        f"Filed on {written(matter.filed)} by {COUNSEL}, counsel for the Plaintiff.",
        "",
        f"1. The Plaintiff, {CLIENT}, spins and exports cotton yarn.",
        f"2. The Defendant, {OPPONENT}, carries goods by sea for reward.",
        f"3. By the Carriage Agreement {matter.agreement} dated {written(matter.signed)} the",
        f"Defendant undertook to carry 640 bales of cotton yarn to {matter.port}.",
        f"4. On {written(matter.loss)} the cargo was discharged from {matter.vessel} wet and",
        "unfit for sale.",
        f"5. The Plaintiff claims damages of USD {matter.amount:,} with interest and costs.",
        "",
        "CAUSE OF ACTION: breach of contract, negligence, bailment.",
    ]
    return [first] + [_allegations(matter, number) for number in range(2, pages + 1)]


def _allegations(matter: Matter, page: int) -> list[str]:
    lines = [f"Suit No. {matter.suit}", "", f"PARTICULARS OF CLAIM, PART {page - 1}", ""]
    for number in range(6):
        day = matter.loss + timedelta(days=page * 3 + number)
        lines.append(f"{page * 6 + number}. On {written(day)} the following was recorded:")
        lines.append(f"   {matter.finding()}")
        lines.append(f"   The Plaintiff puts the Defendant to proof of entry {page}-{number}.")
        lines.append("")
    return lines


def shipments(matter: Matter, *, pages: int) -> list[list[str]]:
    """A bundle of records, one shipment a page, as a party discloses them."""
    return [_shipment(matter, page, pages) for page in range(1, pages + 1)]


def _shipment(matter: Matter, page: int, pages: int) -> list[str]:
    day = matter.signed + timedelta(days=page)
    container = f"HLFU{matter.rng.randrange(1_000_000, 9_999_999)}"
    head = ["REPORT", "Inspection Report on Shipments under Agreement " + matter.agreement] if page == 1 else []
    return [
        *head,
        f"Shipment record {page} of {pages}",
        f"Date: {written(day)}",
        f"Shipper: {CLIENT}",
        f"Carrier: {OPPONENT}",
        f"Container: {container}",
        f"Vessel: {matter.vessel}, discharged at {matter.port}",
        f"Bales: {matter.rng.randrange(20, 640)}, gross weight {matter.rng.randrange(4, 24)} t",
        "",
        *(f"{number}. {matter.finding()}" for number in range(1, 9)),
        "",
        f"Signed for the terminal, {written(day + timedelta(days=1))}.",
    ]


def order(matter: Matter) -> list[list[str]]:
    """What the court directed; it comes as a scan."""
    return [
        [
            *caption(matter),
            "COURT ORDER",
            f"Dated {written(matter.heard)}",
            "",
            "Upon hearing counsel for the parties,",
            "IT IS HEREBY ORDERED that:",
            "1. The Defendant shall file its defence within thirty days.",
            "2. The parties shall exchange the survey reports.",
            f"3. The hearing is listed for {written(matter.heard + timedelta(days=60))}.",
        ],
        [
            f"Suit No. {matter.suit}",
            "",
            "4. The samples kept by the surveyor shall be preserved.",
            "5. Costs are reserved to the trial judge.",
            "",
            "By order of the Court",
            "The Registrar",
        ],
    ]


def affidavit(matter: Matter) -> list[list[str]]:
    """The sworn statement of the Plaintiff's manager; its exhibit is a scan."""
    return [
        [
            *caption(matter),
            f"AFFIDAVIT OF {WITNESS.upper()}",
            "",
            f"I, {WITNESS}, export manager of the Plaintiff, do solemnly affirm and state:",
            f"1. I signed the Carriage Agreement {matter.agreement} on {written(matter.signed)}.",
            f"2. I was present when {matter.vessel} discharged on {written(matter.loss)}.",
            f"3. {matter.finding()}",
            f"Sworn before me on {written(matter.filed)}. Exhibit A follows.",
        ],
        [
            "EXHIBIT A",
            "Delivery note of the terminal",
            f"Discharged at {matter.port} on {written(matter.loss)}",
            "Bales received: 640. Bales found wet: 212.",
            "Remarks: seals broken, lower tiers stained.",
            "Received by the terminal under protest.",
        ],
    ]


def agreement(matter: Matter) -> tuple[list[str], list[list[str]], list[str]]:
    """The contract sued upon: opening, table of rates, closing."""
    opening = [
        "CARRIAGE AGREEMENT",
        f"Agreement No. {matter.agreement}",
        (
            f"This Agreement is made on {written(matter.signed)} between {CLIENT}, a company "
            f"incorporated in India (the Shipper), and {OPPONENT}, a company incorporated in "
            "England (the Carrier)."
        ),
        "WHEREAS the Shipper exports cotton yarn and the Carrier carries goods by sea;",
        "1. The Carrier shall carry the goods with due care from the port of loading.",
        "2. The freight is payable on or before the thirtieth day after each invoice.",
        "3. The rates are those of the following table.",
    ]
    rates = [
        ["Route", "Container", "Rate in USD"],
        [f"Nhava Sheva to {matter.port}", "20 ft", f"{matter.rng.randrange(900, 1800):,}"],
        [f"Nhava Sheva to {matter.port}", "40 ft", f"{matter.rng.randrange(1900, 3200):,}"],
        ["Surcharge for reefer plugs", "any", f"{matter.rng.randrange(100, 400):,}"],
    ]
    closing = [
        "4. This Agreement is governed by the law of England.",
        "5. This is the entire agreement of the parties.",
        "IN WITNESS WHEREOF the parties have signed.",
    ]
    return opening, rates, closing


def email_to_carrier(matter: Matter) -> str:
    """The first complaint about the damage."""
    return (
        "Dear Mr Whitlock,\n\n"
        f"The cargo under agreement {matter.agreement} was discharged from {matter.vessel} on "
        f"{written(matter.loss)} with 212 bales wet. We hold you liable for the loss. The photo "
        "list of the surveyor is attached.\n\n"
        f"Kind regards,\n{WITNESS}\n{CLIENT}\n"
    )


def reply_of_carrier(matter: Matter) -> str:
    """The answer, which denies everything."""
    return (
        "Dear Ms Deshmukh,\n\n"
        f"In reply to your message about {matter.vessel}: the master, {MASTER}, noted heavy "
        f"weather on the voyage to {matter.port}. We deny liability and rely on clause 1 of "
        f"agreement {matter.agreement}.\n\n"
        f"Yours sincerely,\nOliver Whitlock\n{OPPONENT}\n"
    )


def minutes(matter: Matter) -> str:
    """What was said when the parties met."""
    day = matter.loss + timedelta(days=14)
    return (
        "MINUTES OF THE MEETING OF THE JOINT SURVEY COMMITTEE\n\n"
        f"Date: {written(day)}\n"
        f"Present: {WITNESS} for {CLIENT}; Oliver Whitlock for {OPPONENT}\n"
        "Apologies: the terminal operator\n\n"
        f"1. The committee inspected the bales discharged from {matter.vessel}.\n\n"
        f"2. {matter.finding()} {matter.finding()}\n\n"
        "3. It was resolved that each side keeps twelve samples.\n\n"
        f"4. The meeting was adjourned to {written(day + timedelta(days=7))}.\n"
    )


def hindi_notice(matter: Matter) -> str:
    """A notice to the local agent, in Hindi."""
    return (
        "कानूनी सूचना\n\n"
        f"दिनांक: {matter.filed:%d.%m.%Y}\n\n"
        "प्रेषक: केस्ट्रेल टेक्सटाइल्स प्राइवेट लिमिटेड\n"
        "सेवा में: हार्बरलाइन फ्रेट लिमिटेड\n\n"
        f"महोदय, अनुबंध संख्या {matter.agreement} के अंतर्गत भेजा गया माल भीगी हुई अवस्था में मिला। "
        f"आपसे {matter.amount} अमेरिकी डॉलर की क्षतिपूर्ति की मांग की जाती है। "
        "यदि तीस दिन के भीतर भुगतान नहीं किया गया तो न्यायालय में वाद दायर किया जाएगा।\n\n"
        "भवदीय\nअनिता देशमुख\n"
    )


def greek_letter(matter: Matter) -> list[str]:
    """A letter of the agent at the port, in Greek."""
    return [
        "ΕΙΔΟΠΟΙΗΣΗ",
        "",
        f"Ημερομηνία: {matter.loss:%d.%m.%Y}",
        f"Προς: {OPPONENT}",
        "",
        "Αξιότιμοι κύριοι,",
        f"το φορτίο της σύμβασης {matter.agreement} παραδόθηκε με ζημιές.",
        "Τα δέματα βαμβακιού βρέθηκαν υγρά στο λιμάνι.",
        "Παρακαλούμε να ειδοποιήσετε τον ασφαλιστή σας.",
        "",
        "Με εκτίμηση,",
        "Γραφείο Πρακτόρων Λιμένος",
    ]


def invoice(matter: Matter) -> list[str]:
    """A bill; it comes as a picture."""
    return [
        "TAX INVOICE",
        f"Invoice No. {matter.invoice}",
        f"Invoice date: {written(matter.loss + timedelta(days=3))}",
        f"From: {OPPONENT}",
        f"Bill to: {CLIENT}",
        "",
        f"Ocean freight on {matter.vessel} to {matter.port}",
        f"under agreement {matter.agreement}",
        "",
        f"Amount due: USD {matter.rng.randrange(12, 60) * 1000:,}",
        f"Payment is due on {written(matter.loss + timedelta(days=33))}",
    ]


def proposal(matter: Matter) -> list[str]:
    """A letter offering terms."""
    return [
        f"{OPPONENT}",
        f"Date: {written(matter.filed + timedelta(days=20))}",
        "SETTLEMENT PROPOSAL",
        f"Dear {COUNSEL},",
        f"With reference to Suit No. {matter.suit} and our invoice {matter.invoice} we propose to",
        f"pay USD {matter.amount // 4:,} in full and final settlement of all claims.",
        "The proposal is open for fourteen days.",
        "Yours faithfully,",
        "Oliver Whitlock",
    ]


def advice(matter: Matter) -> list[list[str]]:
    """Counsel's view of the case, which the other side must never see."""
    return [
        [
            "PRIVILEGED AND CONFIDENTIAL",
            "ATTORNEY-CLIENT COMMUNICATION",
            "",
            f"From: {COUNSEL}",
            f"To: {CLIENT}",
            f"Date: {written(matter.filed + timedelta(days=5))}",
            "",
            "Dear Ms Deshmukh,",
            f"This letter contains our legal advice on Suit No. {matter.suit}.",
            "In our opinion the claim in contract is strong and that in negligence is not.",
            f"We advise you not to accept less than USD {matter.amount // 2:,}.",
            "Please do not forward this letter to anyone.",
            "",
            "Yours sincerely,",
            COUNSEL,
        ]
    ]


def rejoinder(matter: Matter, *, names: tuple[str, ...]) -> str:
    """A letter that speaks of other documents of the file by their names."""
    listed = "\n".join(f"  - {name}" for name in names)
    return (
        f"{COUNSEL}\n\nDate: {written(matter.filed + timedelta(days=30))}\n\n"
        f"To: {OPPONENT}\n\nDear Sirs,\n\n"
        f"Suit No. {matter.suit}. We refer to your invoice {matter.invoice} and enclose the "
        f"following documents, on which our client relies:\n\n{listed}\n\n"
        f"The survey shows: {matter.finding()}\n\n"
        f"Yours faithfully,\n{COUNSEL}\n"
    )


def consultancy(matter: Matter) -> list[list[str]]:
    """A contract that our own client made with the other side, against itself."""
    day = written(matter.signed + timedelta(days=90))
    return [
        [
            "LITIGATION SUPPORT AGREEMENT",
            "",
            f"This Agreement is made on {day} between {OPPONENT},",
            f"a company incorporated in England, and {CLIENT},",
            "a company incorporated in India.",
            "",
            "WHEREAS the first party is defending a claim about cargo;",
            f"1. {CLIENT} shall support {OPPONENT} in its defence.",
            f"2. {CLIENT} acts for the Defendant, {OPPONENT}.",
            "3. The fee is payable on or before the last day of each month.",
            "",
            "IN WITNESS WHEREOF the parties have signed.",
        ]
    ]
